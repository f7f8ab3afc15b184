/* Starts a Windows program and tells the simulator what Unix cannot know: its Windows process id and its whole
 * 32-bit exit code (a Unix exit status has 8 bits).
 *
 *   launch.exe run REPORT PRIORITY   start it, write "pid N", wait, write "exit N" into REPORT
 *   launch.exe kill PID              TerminateProcess with exit code 1
 *
 * The command line is in the variable SIMBOX_COMMAND_LINE: Wine would quote it anew as an argument. Variables named
 * SIMBOX_SET_X are given to the program as X: Wine does not pass on PATH, TEMP and the like.
 */
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>

static HANDLE report = INVALID_HANDLE_VALUE;

static void tell(const char *word, DWORD number)
{
    char line[64];
    DWORD written;
    int length = snprintf(line, sizeof line, "%s %lu\n", word, (unsigned long)number);
    WriteFile(report, line, (DWORD)length, &written, NULL);
}

static void set_variables(void)
{
    static const wchar_t prefix[] = L"SIMBOX_SET_";
    size_t length = wcslen(prefix);
    wchar_t *block = GetEnvironmentStringsW();
    for (wchar_t *at = block; block && *at; at += wcslen(at) + 1) {
        if (wcsncmp(at, prefix, length) != 0)
            continue;
        wchar_t *copy = _wcsdup(at);
        wchar_t *equals = copy ? wcschr(copy + length, L'=') : NULL;
        if (equals) {
            *equals = 0;
            SetEnvironmentVariableW(copy + length, equals + 1);
            SetEnvironmentVariableW(copy, NULL);
        }
        free(copy);
    }
    FreeEnvironmentStringsW(block);
    /* Ours alone; descendants keep the mark in their Unix environment, which this does not touch. */
    SetEnvironmentVariableW(L"SIMBOX_COMMAND_LINE", NULL);
    SetEnvironmentVariableW(L"SIMBOX_START", NULL);
}

static int run(const wchar_t *path, const wchar_t *priority)
{
    STARTUPINFOW start = {.cb = sizeof start};
    PROCESS_INFORMATION process;
    DWORD code = 0, class = (DWORD)wcstoul(priority, NULL, 0);
    const wchar_t *given = _wgetenv(L"SIMBOX_COMMAND_LINE");
    wchar_t *command_line = given ? _wcsdup(given) : NULL;
    if (!command_line)
        return 124;
    report = CreateFileW(path, GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
    if (report == INVALID_HANDLE_VALUE)
        return 125;
    set_variables();
    if (!CreateProcessW(NULL, command_line, NULL, NULL, TRUE, class | CREATE_SUSPENDED, NULL, NULL, &start,
                        &process)) {
        tell("error", GetLastError());
        return 126;
    }
    /* Wine's CreateProcess leaves the class as it is. */
    SetPriorityClass(process.hProcess, class);
    ResumeThread(process.hThread);
    CloseHandle(process.hThread);
    tell("pid", process.dwProcessId);
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    tell("exit", code);
    return (int)code;
}

static int kill_process(DWORD id)
{
    HANDLE process = OpenProcess(PROCESS_TERMINATE, FALSE, id);
    return process && TerminateProcess(process, 1) ? 0 : 1;
}

int wmain(int argc, wchar_t **argv)
{
    SetConsoleCtrlHandler(NULL, FALSE);
    if (argc == 4 && !wcscmp(argv[1], L"run"))
        return run(argv[2], argv[3]);
    if (argc == 3 && !wcscmp(argv[1], L"kill"))
        return kill_process((DWORD)wcstoul(argv[2], NULL, 10));
    return 2;
}
