"""The model artifact: one file, pinned by size and digest."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from ninfer_fleet.settings.trap import Values, Word, check_name, check_url, refuse


class Model(Values):
    """The weights file and where it comes from.

    The pair (engine commit, artifact digest) is one unit: the engine at 3d11fd64 reads container version 2
    only, and an unrelated artifact of exactly the same size exists, so only the digest tells them apart.
    """

    file_name: str = Field(
        default="qwen3_8_27b.ninfer",
        pattern=r"^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_-])?$",
        description="its name on the box, below models",
    )
    model_id: Word = Field(default="qwen3.8-27b", description="what /v1/models answers")
    target: Word = Field(default="qwen3_8_27b", description="the engine's name of the architecture")
    url: str = Field(
        default="https://huggingface.co/neroued/Qwen3.8-27B-NInfer/resolve/"
        "3526913004b1cf552cb57b88d6a5c6f5e4a89a70/qwen3_8_27b.ninfer",
        description="where a box fetches it with curl; a pinned revision or a copy on the LAN",
    )
    size_bytes: int = Field(
        default=18_210_531_328,
        gt=8,
        le=2**42,
        description="16.96 GiB; weights on the card are 15.92 to 16.95",
    )
    sha256: str = Field(
        default="eec39564993d6e9c7d5e383382a760f093465c9d163ec9a1bd6b80199514bf3e",
        description="lower-case hex; an unrelated file has the same size, only this tells them apart",
    )
    container_version: int = Field(
        default=2, ge=0, le=255, description='eighth byte of the file, after "NINFER" and a zero'
    )

    @field_validator("file_name")
    @classmethod
    def _no_device(cls, name: str) -> str:
        return check_name(name)

    @field_validator("url")
    @classmethod
    def _pinned(cls, url: str) -> str:
        check_url(url, ("https", "http", "file"))
        if re.search(r"/resolve/(main|master)/", url):
            raise refuse(
                f"{url!r} follows a branch, whose file of this name changed three times",
                "put the revision's hash in the place of the branch name",
            )
        return url

    @field_validator("sha256")
    @classmethod
    def _digest(cls, digest: str) -> str:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise refuse("not a SHA-256 digest", "give 64 lower-case hex digits")
        return digest

    @property
    def magic(self) -> bytes:
        """The first eight bytes of the file."""
        return b"NINFER\x00" + bytes([self.container_version])
