"""Accounts: one account has many spellings and one SID."""

from winfleet.account.fact import Accounts
from winfleet.account.model import AccountSids

__all__ = ["AccountSids", "Accounts"]
