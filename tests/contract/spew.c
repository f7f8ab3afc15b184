/* Writes as many bytes to stdout as its argument says, in pieces of 64 KiB. */
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    static char piece[65536];
    long long left = argc > 1 ? atoll(argv[1]) : 0;
    memset(piece, 'x', sizeof piece);
    _setmode(1, _O_BINARY);
    while (left > 0) {
        int written = _write(1, piece, left < (long long)sizeof piece ? (unsigned)left : (unsigned)sizeof piece);
        if (written <= 0) return 1;
        left -= written;
    }
    return 0;
}
