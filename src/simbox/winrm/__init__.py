"""A WS-Man endpoint that behaves like the WinRM service of Windows, one module a layer.

http1 (sockets, HTTP) - auth (Basic, NTLM, Negotiate) - sealing - soap (text) - service and shells
(meaning), with limits and faults as configuration.
"""

from simbox.winrm.auth import Credential
from simbox.winrm.certificate import Certificate
from simbox.winrm.endpoint import WinRMEndpoint
from simbox.winrm.faults import Fault, FaultPlan
from simbox.winrm.limits import Limits

__all__ = ["Certificate", "Credential", "Fault", "FaultPlan", "Limits", "WinRMEndpoint"]
