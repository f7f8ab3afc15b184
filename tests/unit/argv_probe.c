/* Stands in for ninfer-serve.exe: writes its arguments to argv-<run>.txt beside probe.txt, and ends with the exit code
   that line <run> of probe.txt names. A line "stop <code>" first makes the stop flag, so that the .bat ends after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    char folder[512], path[600], line[64] = "stop 0";
    const char *home = getenv("PROBE");
    int run = 1, i;
    FILE *file;

    if (home == NULL) return 99;
    snprintf(folder, sizeof folder, "%s", home);
    for (;; run++) {
        snprintf(path, sizeof path, "%s\\argv-%d.txt", folder, run);
        file = fopen(path, "rb");
        if (file == NULL) break;
        fclose(file);
    }
    file = fopen(path, "wb");
    if (file == NULL) return 98;
    for (i = 1; i < argc; i++) fprintf(file, "%s\n", argv[i]);
    fclose(file);
    printf("run %d\n", run);

    snprintf(path, sizeof path, "%s\\probe.txt", folder);
    file = fopen(path, "rb");
    if (file == NULL) return 97;
    for (i = 0; i < run; i++)
        if (fgets(line, sizeof line, file) == NULL) { strcpy(line, "stop 0"); break; }
    fclose(file);
    if (strncmp(line, "stop ", 5) == 0) {
        file = fopen(getenv("PROBE_STOP"), "wb");
        if (file != NULL) fclose(file);
        return atoi(line + 5);
    }
    return atoi(line);
}
