"""Access control lists of files and folders."""

from winfleet.acl.fact import Acls
from winfleet.acl.model import Access, AccessRule, Acl
from winfleet.acl.operations import inherited, protected

__all__ = ["Access", "AccessRule", "Acl", "Acls", "inherited", "protected"]
