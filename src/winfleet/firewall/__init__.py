"""Windows Firewall: rules of all stores, and who can reach a port."""

from winfleet.firewall.fact import Firewall
from winfleet.firewall.model import FirewallState
from winfleet.firewall.operations import absent, disabled, exposed_only_to, rules
from winfleet.firewall.rule import Rule

__all__ = ["Firewall", "FirewallState", "Rule", "absent", "disabled", "exposed_only_to", "rules"]
