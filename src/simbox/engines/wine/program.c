/* One executable under many names: nvidia-smi.exe, git.exe, ninfer-serve.exe, ...
 *
 * Windows starts, lists and ends it as an ordinary process; what it does is decided by the simulator, which is told
 * its name, path, arguments, folder, process id and environment. Answer frames: one byte (O stdout, E stderr, X exit),
 * four bytes of length (little endian), data (X: the exit code). When this process is ended from outside the
 * connection breaks, and the simulator ends the program.
 */
#include "simulator.h"
#include <shellapi.h>

/* A field of a JSON object: ,"name":"value" */
static void text_field(struct text *text, const char *name, const WCHAR *value)
{
    text_put(text, ",\"");
    text_put(text, name);
    text_put(text, "\":");
    text_json(text, value, wcslen(value));
}

/* Its process id on the machine under Wine, by the system call itself: Windows has no name for it. The simulator
 * watches that process, for Wine 8 may leave the connection of a killed program open (seen: 1 kill of 200). */
static long unix_process_id(void)
{
    long number = 39; /* getpid */

    __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
    return number;
}

static int receive(SOCKET connection, char *into, size_t length)
{
    while (length) {
        int count = recv(connection, into, length > 65536 ? 65536 : (int)length, 0);
        if (count <= 0)
            return 0;
        into += count;
        length -= (size_t)count;
    }
    return 1;
}

static void pass_on(HANDLE stream, const char *bytes, DWORD length)
{
    while (length) {
        DWORD written;
        if (!WriteFile(stream, bytes, length, &written, NULL))
            return; /* nobody reads: a program whose reader has gone goes on as well */
        bytes += written;
        length -= written;
    }
}

static void fail(const char *name, const char *reason)
{
    fprintf(stderr, "%s: %s\n", name, reason);
    fflush(stderr);
    ExitProcess(255);
}

static void describe(struct text *line, const WCHAR *path)
{
    const WCHAR *name = wcsrchr(path, L'\\');
    WCHAR folder[32768];
    WCHAR *environment = GetEnvironmentStringsW();
    WCHAR **arguments;
    char number[32];
    int count, first = 1;

    text_put(line, ",\"op\":\"program\"");
    text_field(line, "name", name ? name + 1 : path);
    text_field(line, "path", path);
    text_field(line, "command_line", GetCommandLineW());
    text_put(line, ",\"argv\":[");
    arguments = CommandLineToArgvW(GetCommandLineW(), &count);
    for (int i = 0; i < count; i++) {
        if (i)
            text_put(line, ",");
        text_json(line, arguments[i], wcslen(arguments[i]));
    }
    text_put(line, "]");
    GetCurrentDirectoryW(32768, folder);
    text_field(line, "cwd", folder);
    snprintf(number, sizeof number, ",\"pid\":%lu", GetCurrentProcessId());
    text_put(line, number);
    snprintf(number, sizeof number, ",\"unix_pid\":%ld", unix_process_id());
    text_put(line, number);
    text_put(line, ",\"environment\":{");
    for (WCHAR *entry = environment; *entry; entry += wcslen(entry) + 1) {
        WCHAR *equals = wcschr(entry + 1, L'='); /* entries such as =C:=C:\work begin with it */
        if (!equals || *entry == L'=')
            continue;
        if (!first)
            text_put(line, ",");
        first = 0;
        text_json(line, entry, (size_t)(equals - entry));
        text_put(line, ":");
        text_json(line, equals + 1, wcslen(equals + 1));
    }
    text_put(line, "}}\n");
}

int main(int argc, char **argv)
{
    struct text line = {0};
    WCHAR path[32768];
    const char *name = argc ? argv[0] : "program";
    SOCKET connection = simulator_connect(&line);

    if (connection == INVALID_SOCKET)
        fail(name, "no simulator at SIMBOX_PORT with SIMBOX_TOKEN; is the box of this process up?");
    GetModuleFileNameW(NULL, path, 32768);
    describe(&line, path);
    if (!simulator_send(connection, &line))
        fail(name, "the simulator has closed the connection");
    for (;;) {
        unsigned char head[5];
        unsigned long length;
        char *data;
        if (!receive(connection, (char *)head, 5))
            fail(name, "the simulator has ended without an exit code");
        length = head[1] | head[2] << 8 | head[3] << 16 | (unsigned long)head[4] << 24;
        data = malloc(length + 1);
        if (!data || !receive(connection, data, length))
            fail(name, "the simulator has ended in the middle of an answer");
        if (head[0] == 'X') {
            unsigned char *code = (unsigned char *)data;
            ExitProcess(code[0] | code[1] << 8 | code[2] << 16 | (unsigned)code[3] << 24);
        }
        pass_on(GetStdHandle(head[0] == 'E' ? STD_ERROR_HANDLE : STD_OUTPUT_HANDLE), data, length);
        free(data);
    }
}
