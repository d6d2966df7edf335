"""A server of the official Python SDK at 127.0.0.1:PORT, which it prints, that wants a login, with the SDK's own authorization server
beside it: argv is the resource, the issuer and the seconds that a token lives. What it issued and was asked is a JSON line each on
standard output. SIGUSR1 revokes all access tokens."""
import json
import secrets
import signal
import sys
import time

import uvicorn
from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, TokenError, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.auth import OAuthToken

RESOURCE, ISSUER, LIFE = sys.argv[1], sys.argv[2], int(sys.argv[3])


def say(**what):
    print(json.dumps(what), flush=True)


class Provider:
    """Each code and each refresh token serves once; a user who always agrees."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info
        say(registered=client_info.client_id, secret=client_info.client_secret)

    async def authorize(self, client, params):
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code, scopes=params.scopes or [], expires_at=time.time() + 60, client_id=client.client_id, code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri, redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly, resource=params.resource)
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    def issue(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        until = int(time.time()) + LIFE
        self.access[access] = AccessToken(token=access, client_id=client.client_id, scopes=scopes, expires_at=until, resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes, resource=resource)
        say(access=access, refresh=refresh, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFE, token_type="Bearer", scope=" ".join(scopes))

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        return self.issue(client, scopes, refresh_token.resource)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.pop(token.token, None)


provider = Provider()


def revoke(*_):
    provider.access.clear()
    say(revoked=True)


server = MCPServer("double", auth_server_provider=provider, auth=AuthSettings(
    issuer_url=ISSUER, resource_server_url=RESOURCE, required_scopes=["use"], validate_token_resource=True,
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["use"], default_scopes=["use"])))


@server.tool()
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@server.tool()
def remove(path: str) -> str:
    """Must not be called."""
    return "removed"


class Ready(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        signal.signal(signal.SIGUSR1, revoke)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)


app = server.streamable_http_app(transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False))
Ready(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning")).run()
