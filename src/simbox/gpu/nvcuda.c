/* nvcuda.dll: the part of NVIDIA's driver API that tells what devices there are.
 *
 * Signatures, result codes and attribute numbers are those of the CUDA driver API (cuda.h). The values come from the
 * simulator's method gpu.devices: the answer has the names of `Driver` in Get-BoxGpu (docs/box-commands.md).
 */
#include "simulator.h"

#define API __declspec(dllexport) int __stdcall
enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, SYSTEM_NOT_READY = 802 };
enum { MULTIPROCESSORS = 16, CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };
enum { MOST_DEVICES = 16 };

struct device {
    char name[128], bus[64];
    int multiprocessors, major, minor;
    unsigned long long memory;
};

static struct device devices[MOST_DEVICES];
static int device_count, driver_version, initialised;

/* The value that follows "key": within [from, to), or NULL. The simulator's keys occur in no string value. */
static const char *value_of(const char *from, const char *to, const char *key)
{
    char quoted[64];
    const char *found;
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    found = strstr(from, quoted);
    if (!found || found >= to)
        return NULL;
    found += strlen(quoted);
    while (found < to && (*found == ' ' || *found == ':'))
        found++;
    return found < to ? found : NULL;
}

static unsigned long long number_of(const char *from, const char *to, const char *key)
{
    const char *value = value_of(from, to, key);
    return value ? strtoull(value, NULL, 10) : 0;
}

static void string_of(const char *from, const char *to, const char *key, char *into, size_t room)
{
    const char *value = value_of(from, to, key);
    size_t length = 0;
    if (value && *value == '"')
        for (value++; *value && *value != '"' && length + 1 < room; value++)
            into[length++] = *value;
    into[length] = 0;
}

static const char *object_end(const char *from)
{
    int depth = 0;
    for (; *from; from++) {
        if (*from == '{')
            depth++;
        if (*from == '}' && !--depth)
            return from + 1;
    }
    return from;
}

static int ask(struct text *answer)
{
    struct text line = {0};
    SOCKET connection = simulator_connect(&line);
    char chunk[4096];
    int count;

    if (connection == INVALID_SOCKET)
        return 0;
    text_put(&line, ",\"op\":\"rpc\",\"method\":\"gpu.devices\",\"params\":{}}\n");
    if (simulator_send(connection, &line))
        while ((count = recv(connection, chunk, sizeof chunk, 0)) > 0) {
            text_add(answer, chunk, (size_t)count);
            if (memchr(chunk, '\n', (size_t)count))
                break;
        }
    closesocket(connection);
    free(line.bytes);
    return answer->length > 0;
}

API cuInit(unsigned flags)
{
    struct text answer = {0};
    const char *end, *at;
    int result;

    if (flags)
        return INVALID_VALUE;
    if (!ask(&answer))
        return SYSTEM_NOT_READY;
    end = answer.bytes + answer.length;
    driver_version = (int)number_of(answer.bytes, end, "DriverVersion");
    result = (int)number_of(answer.bytes, end, "InitResult");
    device_count = 0;
    at = value_of(answer.bytes, end, "Devices");
    while (!result && at && device_count < MOST_DEVICES && (at = strchr(at, '{'))) {
        const char *stop = object_end(at);
        struct device *device = &devices[device_count];
        if (!value_of(at, stop, "PciBusId"))
            break;
        string_of(at, stop, "Name", device->name, sizeof device->name);
        string_of(at, stop, "PciBusId", device->bus, sizeof device->bus);
        device->multiprocessors = (int)number_of(at, stop, "MultiprocessorCount");
        device->major = (int)number_of(at, stop, "ComputeCapabilityMajor");
        device->minor = (int)number_of(at, stop, "ComputeCapabilityMinor");
        device->memory = number_of(at, stop, "TotalMemoryBytes");
        device_count++;
        at = stop;
    }
    free(answer.bytes);
    initialised = !result;
    return result;
}

API cuDriverGetVersion(int *version)
{
    if (!version)
        return INVALID_VALUE;
    if (!driver_version) { /* the one call that works before cuInit */
        struct text answer = {0};
        if (ask(&answer))
            driver_version = (int)number_of(answer.bytes, answer.bytes + answer.length, "DriverVersion");
        free(answer.bytes);
    }
    *version = driver_version;
    return SUCCESS;
}

API cuDeviceGetCount(int *count)
{
    if (!initialised)
        return NOT_INITIALIZED;
    if (!count)
        return INVALID_VALUE;
    *count = device_count;
    return SUCCESS;
}

API cuDeviceGet(int *device, int ordinal)
{
    if (!initialised)
        return NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= device_count)
        return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

static int copy(char *into, int room, const char *text, int device)
{
    if (!initialised)
        return NOT_INITIALIZED;
    if (device < 0 || device >= device_count)
        return INVALID_DEVICE;
    if (!into || room <= 0)
        return INVALID_VALUE;
    strncpy(into, text, (size_t)room - 1);
    into[room - 1] = 0;
    return SUCCESS;
}

API cuDeviceGetName(char *name, int room, int device)
{
    return copy(name, room, devices[device < 0 || device >= MOST_DEVICES ? 0 : device].name, device);
}

API cuDeviceGetPCIBusId(char *bus, int room, int device)
{
    return copy(bus, room, devices[device < 0 || device >= MOST_DEVICES ? 0 : device].bus, device);
}

API cuDeviceGetAttribute(int *value, int attribute, int device)
{
    if (!initialised)
        return NOT_INITIALIZED;
    if (device < 0 || device >= device_count)
        return INVALID_DEVICE;
    if (attribute == MULTIPROCESSORS)
        *value = devices[device].multiprocessors;
    else if (attribute == CAPABILITY_MAJOR)
        *value = devices[device].major;
    else if (attribute == CAPABILITY_MINOR)
        *value = devices[device].minor;
    else
        return INVALID_VALUE;
    return SUCCESS;
}

API cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    if (!initialised)
        return NOT_INITIALIZED;
    if (device < 0 || device >= device_count)
        return INVALID_DEVICE;
    *bytes = devices[device].memory;
    return SUCCESS;
}
