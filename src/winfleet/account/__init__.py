"""Accounts: one account has many spellings and one SID."""
