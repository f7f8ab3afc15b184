/* How a stand-in reaches the simulator: a loopback connection, one line of JSON out, an answer back.
 *
 * SIMBOX_PORT and SIMBOX_TOKEN are in the environment of every process of a simulated box.
 */
#ifndef SIMULATOR_H
#define SIMULATOR_H

#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Text that grows. */
struct text {
    char *bytes;
    size_t length, room;
};

static void text_add(struct text *text, const char *bytes, size_t length)
{
    if (text->length + length + 1 > text->room) {
        text->room = (text->length + length + 1) * 2;
        text->bytes = realloc(text->bytes, text->room);
        if (!text->bytes)
            ExitProcess(255);
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

static void text_put(struct text *text, const char *bytes)
{
    text_add(text, bytes, strlen(bytes));
}

/* UTF-16 of Windows as a JSON string. Every unit beyond printable ASCII is escaped, so that half a surrogate pair,
 * which Windows allows in an argument, arrives as it is. */
static void text_json(struct text *text, const WCHAR *value, size_t units)
{
    text_put(text, "\"");
    for (size_t i = 0; i < units; i++) {
        WCHAR unit = value[i];
        char escaped[8];
        if (unit == '"' || unit == '\\') {
            escaped[0] = '\\';
            escaped[1] = (char)unit;
            text_add(text, escaped, 2);
        } else if (unit >= 0x20 && unit < 0x7f) {
            escaped[0] = (char)unit;
            text_add(text, escaped, 1);
        } else {
            snprintf(escaped, sizeof escaped, "\\u%04x", unit);
            text_add(text, escaped, 6);
        }
    }
    text_put(text, "\"");
}

/* Connected to the simulator, or INVALID_SOCKET. The token is added to line as its first field: line then begins
 * with {"token":"..." and wants further fields and a closing brace. */
static SOCKET simulator_connect(struct text *line)
{
    WSADATA data;
    WCHAR port[16], token[128];
    struct sockaddr_in address = {0};
    SOCKET connection;

    if (!GetEnvironmentVariableW(L"SIMBOX_PORT", port, 16) || !GetEnvironmentVariableW(L"SIMBOX_TOKEN", token, 128))
        return INVALID_SOCKET;
    if (WSAStartup(MAKEWORD(2, 2), &data))
        return INVALID_SOCKET;
    connection = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)wcstoul(port, NULL, 10));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connection == INVALID_SOCKET)
        return INVALID_SOCKET;
    /* A child must not inherit the socket: the simulator takes its closing as the end of this process. */
    SetHandleInformation((HANDLE)connection, HANDLE_FLAG_INHERIT, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address)) {
        closesocket(connection);
        return INVALID_SOCKET;
    }
    text_put(line, "{\"token\":");
    text_json(line, token, wcslen(token));
    return connection;
}

static int simulator_send(SOCKET connection, const struct text *line)
{
    size_t sent = 0;
    while (sent < line->length) {
        int count = send(connection, line->bytes + sent, (int)(line->length - sent), 0);
        if (count <= 0)
            return 0;
        sent += (size_t)count;
    }
    return 1;
}

#endif
