/* Stands in for ninfer-serve.exe: writes its arguments to argv-<run>.txt in the folder %PROBE%, and ends with the exit
   code that line <run> of its probe.txt names. A line "stop <code>" first makes the stop flag %PROBE_STOP%, so that the
   .bat ends after it; so does the end of the list.
   Named ping.exe it stands in for the pause: it notes its arguments in pings.txt at once, and makes the stop flag at
   the call whose number is in %PROBE_PINGS%. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_in(const char *folder, const char *name, const char *mode)
{
    char path[600];
    snprintf(path, sizeof path, "%s\\%s", folder, name);
    return fopen(path, mode);
}

static void stop(void)
{
    FILE *file = fopen(getenv("PROBE_STOP"), "wb");
    if (file != NULL) fclose(file);
}

static int ping(const char *folder, int argc, char **argv)
{
    const char *last = getenv("PROBE_PINGS");
    int calls = 0, c, i;
    FILE *file = open_in(folder, "pings.txt", "a+b");
    if (file == NULL) return 96;
    for (i = 1; i < argc; i++) fprintf(file, "%s ", argv[i]);
    fputs("\n", file);
    rewind(file);
    while ((c = fgetc(file)) != EOF) calls += c == '\n';
    fclose(file);
    if (last != NULL && calls >= atoi(last)) stop();
    return 0;
}

int main(int argc, char **argv)
{
    char name[64], line[64] = "stop 0";
    const char *home = getenv("PROBE");
    int run = 1, i;
    FILE *file;

    if (home == NULL) return 99;
    if (strstr(argv[0], "ping.exe") != NULL) return ping(home, argc, argv);
    for (;; run++) {
        snprintf(name, sizeof name, "argv-%d.txt", run);
        file = open_in(home, name, "rb");
        if (file == NULL) break;
        fclose(file);
    }
    file = open_in(home, name, "wb");
    if (file == NULL) return 98;
    for (i = 1; i < argc; i++) fprintf(file, "%s\n", argv[i]);
    fclose(file);
    printf("run %d\n", run);

    file = open_in(home, "probe.txt", "rb");
    if (file == NULL) return 97;
    for (i = 0; i < run; i++)
        if (fgets(line, sizeof line, file) == NULL) { strcpy(line, "stop 0"); break; }
    fclose(file);
    if (strncmp(line, "stop ", 5) == 0) {
        stop();
        return atoi(line + 5);
    }
    return atoi(line);
}
