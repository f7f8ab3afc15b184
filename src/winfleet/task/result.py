"""Codes of task runs in words (HRESULT, NTSTATUS or the program's own exit code)."""

from __future__ import annotations

# Sources: Microsoft's "Task Scheduler Error and Success Constants" and NTSTATUS values; what they mean for a
# task in the field: docs/facts/windows.md#task-result-codes.
_RESULTS = {
    0x0: "succeeded",
    0x41300: "ready",
    0x41301: "is running",
    0x41302: "disabled",
    0x41303: "has never run",
    0x41304: "no more runs scheduled",
    0x41305: "one of the properties that it needs to run on a schedule is missing",
    0x41306: "was terminated by a user",
    0x41307: "has no triggers, or they are disabled",
    0x41308: "event triggers have no set times",
    0x4131B: "registered, but not all triggers will start it",
    0x4131C: "registered, but it may not start: its account needs the right to log on as a batch job",
    0x41325: "the scheduler has been asked to start it",
    0x80041309: "a trigger was not found",
    0x8004130F: "no account is known for it",
    0x80041310: "its account or its password is not known",
    0x80041314: "its name, or a folder's, is in use by another object",
    0x80041318: "a value in the task XML is out of range",
    0x8004131F: "an instance is already running",
    0x80041323: "the scheduler is too busy",
    0x80041324: "it ran while it was being registered or changed, and was ended",
    0x80041326: "is disabled",
    0x80041327: "it cannot be stopped: AllowHardTerminate is false",
    0x80041328: "a value in it cannot be changed while it runs",
    0x8004130D: "the scheduler could not read the task's credentials",
    0x800704DD: "nobody was logged on to give it a session",
    0x800710E0: "the operator refused the request: no session, or a condition does not hold",
    0x80070002: "the file was not found",
    0x80070003: "the folder was not found",
    0x80070005: "access denied",
    0x8007010B: "its working directory does not exist",
    0x80070057: "an argument is wrong",
    0x800700C1: "the file is no program for this Windows",
    0x8007052E: "the user name or password is wrong",
    0x80070569: "its account may not log on as a batch job",
    0xC0000005: "crashed: access violation",
    0xC0000017: "ran out of memory",
    0xC00000FD: "crashed: stack overflow",
    0xC0000135: "a DLL was not found",
    0xC0000139: "a DLL is of another version: an entry point is missing",
    0xC000013A: "its console or session was closed",
    0xC0000142: "a DLL failed to initialise (desktop heap or session)",
    0xC0000374: "crashed: heap corruption",
    0xC0000409: "crashed: the program aborted itself",
    0xFFFFFFFF: "was killed",
    0xFFFD0000: "PowerShell could not open the script file",
}
# Nothing is wrong: succeeded, ready, running, never run, no runs left, no triggers, events only, queued.
HARMLESS = frozenset({0x0, 0x41300, 0x41301, 0x41303, 0x41304, 0x41307, 0x41308, 0x41325})


def result_words(code: int | None) -> str:
    """A run result in words: 0x41306 -> "0x00041306 (was terminated by a user)"."""
    if code is None:
        return "no result"
    unsigned = code & 0xFFFFFFFF
    return f"0x{unsigned:08X} ({_RESULTS.get(unsigned, 'exit code ' + str(code))})"


def harmless(code: int | None) -> bool:
    """True when a result tells of no trouble."""
    return code is None or (code & 0xFFFFFFFF) in HARMLESS
