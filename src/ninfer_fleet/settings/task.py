"""The scheduled task that keeps the server alive."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from ninfer_fleet.settings.trap import Values, refuse

LONGEST_TASK_PATH = 200  # the folder of the task's file takes the rest of 260
_TAKEN = {
    "microsoft": r"\Microsoft, the folder of Windows' own tasks",
    "ninferfleet": r"\NInferFleet, the folder of this tool's own jobs",
}
_NOT_IN_ACCOUNTS = frozenset('"/[]:;|=,+*?<>')
_QUOTES = ("'", "`", "\u2018", "\u2019", "\u201c", "\u201d")


class Task(Values):
    r"""The task \NInferServe: starts the supervising .bat, again and again if need be."""

    path: str = Field(
        default=r"\NInferServe",
        pattern=r"^(\\[A-Za-z0-9._ -]+)+$",
        description="folder and name in the Task Scheduler",
    )
    account: str | None = Field(
        default=None,
        description="whose rights the server has; None: the account that this fleet connects with",
    )
    logon_type: Literal["S4U", "InteractiveToken", "ServiceAccount"] = Field(
        default="S4U",
        description="S4U: runs with nobody logged on, no password stored, no window somebody could close",
    )
    run_level: Literal["limited", "highest"] = Field(
        default="limited", description="the server needs no administrator"
    )
    start_at: tuple[Literal["boot", "logon"], ...] = Field(
        default=("boot",),
        min_length=1,
        description="boot: with nobody logged on; logon: for an InteractiveToken task",
    )
    boot_delay_s: int = Field(
        default=30, ge=0, le=600, description="S4U logon can fail in the first seconds after boot"
    )
    watchdog_minutes: int = Field(
        default=1, ge=1, le=60, description="starts the supervisor again if it died"
    )
    priority: int = Field(
        default=4, ge=0, le=10, description="7, the default, lowers CPU, disk and memory priority"
    )
    shortest_backoff_s: int = Field(
        default=2, ge=1, le=3600, description="pause before the first restart after an exit"
    )
    longest_backoff_s: int = Field(default=60, ge=1, le=86_400, description="pauses double up to this")
    calm_minutes: int = Field(default=10, ge=1, le=600, description="a run this long resets the pauses")
    ready_timeout_s: int = Field(
        default=180,
        ge=70,
        le=86_400,
        description="start to 200 on /health; measured 6.5 to 7.8 s, over 60 s after idle; Windows waits 60 s "
        "before it repeats a failed launch",
    )

    prove_generation: bool = Field(
        default=True, description="after a start, ask for one token: a listed model proves no working engine"
    )

    @field_validator("path")
    @classmethod
    def _own_place(cls, path: str) -> str:
        parts = path.split("\\")[1:]
        if parts[0].casefold() in _TAKEN:
            raise refuse(
                f"{path!r} lies in {_TAKEN[parts[0].casefold()]}",
                r"use a name of its own such as \NInferServe",
            )
        if any(part != part.strip() or part.endswith(".") for part in parts) or len(path) > LONGEST_TASK_PATH:
            raise refuse(
                f"{path!r} is longer than {LONGEST_TASK_PATH} characters, or has a part that begins or ends with a"
                " blank or ends with a dot",
                r"use a short name such as \NInferServe",
            )
        return path

    @field_validator("account")
    @classmethod
    def _account_name(cls, account: str | None) -> str | None:
        if account is None:
            return None
        unfit = "".join(sorted({one for one in account if not one.isprintable() or one in _NOT_IN_ACCOUNTS}))
        quoted = account[:1] in _QUOTES or account[-1:] in _QUOTES
        if unfit or quoted or account != account.strip() or account.count("\\") > 1 or len(account) > 256:
            raise refuse(
                f"{account!r} is no account name of Windows" + (f" (it holds {unfit!r})" if unfit else ""),
                r"give NAME, DOMAIN\NAME, name@domain or a SID, without quotes",
            )
        if not account.strip("\\"):
            raise refuse("the account is empty", "leave it out, or name an account")
        return account

    @field_validator("priority")
    @classmethod
    def _not_lowered(cls, priority: int) -> int:
        if priority >= 7:
            raise refuse(
                f"priority {priority} runs the server below normal, with lowered disk and memory priority",
                "use 4, normal",
            )
        return priority

    @model_validator(mode="after")
    def _starts(self) -> Task:
        if self.logon_type == "InteractiveToken" and "logon" not in self.start_at:
            raise refuse(
                "InteractiveToken runs only while somebody is logged on, so a boot trigger alone "
                "never starts it",
                "add 'logon' to start_at, or logon_type 'S4U'",
            )
        service = (self.account or "").upper() in (
            "SYSTEM",
            "LOCAL SERVICE",
            "S-1-5-18",
            "S-1-5-19",
            "S-1-5-20",
        )
        if service != (self.logon_type == "ServiceAccount"):
            raise refuse(
                f"account {self.account!r} with logon type {self.logon_type} does not fit together",
                "ServiceAccount goes with SYSTEM or LOCAL SERVICE; S4U and InteractiveToken with a "
                "person's account",
            )
        if self.longest_backoff_s < self.shortest_backoff_s:
            raise refuse("longest_backoff_s is below shortest_backoff_s", "for example 2 and 60")
        return self
