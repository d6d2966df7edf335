"""An OAuth 2 server made of Authlib, run by the client libraries' Python: argv is one JSON object.
It issues tokens for client credentials, refresh tokens (rotated at each use), device codes and JWT
bearer, checks the assertions of Google and GitHub, and serves the resources that need the tokens. What it issued and
was asked is a JSON line each in its log; `control` is a file whose words change its mind."""
import base64
import json
import logging
import os
import sys
import time
import urllib.parse

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.jose import JsonWebKey, jwt
from authlib.oauth2.rfc6749 import ClientMixin, TokenMixin, grants
from authlib.oauth2.rfc7523 import JWTBearerGrant
from authlib.oauth2.rfc8628 import (DeviceAuthorizationEndpoint, DeviceCodeGrant,
                                    DeviceCredentialDict)
from flask import Flask, Response, jsonify, request, session
from itsdangerous import BadSignature, URLSafeTimedSerializer

conf = json.loads(sys.argv[1])
LIFE = conf["life"]
tokens, refreshes = {}, {conf["refresh"]: "refresher"}
app = Flask("oauth")
app.secret_key = conf["signing"]
app.config["OAUTH2_TOKEN_EXPIRES_IN"] = {
    "client_credentials": LIFE, "refresh_token": LIFE, "authorization_code": LIFE,
    "urn:ietf:params:oauth:grant-type:jwt-bearer": LIFE}
app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
logging.getLogger("werkzeug").setLevel(logging.ERROR)


def note(**what):
    with open(conf["log"], "a") as f:
        f.write(json.dumps(what) + "\n")


def word():
    try:
        with open(conf["control"]) as f:
            return f.read().strip()
    except OSError:
        return ""


class Client(ClientMixin):
    def __init__(self, name, secret, how, kinds):
        self.client_id, self.secret, self.how, self.kinds = name, secret, how, kinds

    def get_client_id(self):
        return self.client_id

    def get_allowed_scope(self, scope):
        return scope or ""

    def check_client_secret(self, secret):
        return secret == self.secret

    def check_endpoint_auth_method(self, method, endpoint):
        return method == self.how

    def check_grant_type(self, kind):
        return kind in self.kinds


clients = {c["id"]: Client(c["id"], c["secret"], c["auth"], c["grants"]) for c in conf["clients"]}


class Token(TokenMixin):
    def __init__(self, text, client, scope):
        self.text, self.client_id, self.scope = text, client, scope

    def check_client(self, client):
        return client.client_id == self.client_id

    def get_scope(self):
        return self.scope

    def get_expires_in(self):
        return LIFE

    def is_expired(self):
        return False

    def is_revoked(self):
        return False


def save_token(token, req):
    tokens[token["access_token"]] = (req.client.client_id, time.time() + LIFE)
    note(issued=token["access_token"], to=req.client.client_id, scope=token.get("scope"),
         refresh=token.get("refresh_token"))
    if token.get("refresh_token"):
        refreshes[token["refresh_token"]] = req.client.client_id


server = AuthorizationServer(app, query_client=clients.get, save_token=save_token)


class Credentials(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]


class Refresh(grants.RefreshTokenGrant):
    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post", "none"]

    def authenticate_refresh_token(self, text):
        client = refreshes.get(text)
        return Token(text, client, "read") if client else None

    def authenticate_user(self, token):
        return token.client_id

    def revoke_old_credential(self, token):
        refreshes.pop(token.text, None)
        note(revoked=True)


class Assertion(JWTBearerGrant):
    def resolve_issuer_client(self, issuer):
        return clients.get(issuer)

    def resolve_client_key(self, client, headers, payload):
        return JsonWebKey.import_key(conf["ec_public" if headers["alg"] == "ES256" else "public"])

    def authenticate_user(self, subject):
        return subject

    def has_granted_permission(self, client, user):
        return user == "user-1"


devices = {}


class Devices(DeviceAuthorizationEndpoint):
    def get_verification_uri(self):
        return "https://person.example.com/device"

    def save_device_credential(self, client_id, scope, answer):
        devices[answer["device_code"]] = DeviceCredentialDict(
            client_id=client_id, scope=scope or "", expires_at=time.time() + 600, **{
                k: answer[k] for k in ("device_code", "user_code")})


class DeviceCode(DeviceCodeGrant):
    def query_device_credential(self, code):
        return devices.get(code)

    def query_user_grant(self, code):
        return ("user-1", True) if word() == "approved" else None

    def should_slow_down(self, credential):
        return False


server.register_grant(DeviceCode)
server.register_endpoint(Devices(server))
server.register_grant(Credentials)
server.register_grant(Refresh)
server.register_grant(Assertion)


@app.route("/token", methods=["POST"])
@app.route("/tenant-1/oauth2/v2.0/token", methods=["POST"])
def token():
    note(asked=request.path, grant=request.form.get("grant_type"))
    if word() == "down":
        return Response("no", 500)
    if word() == "silent":
        time.sleep(20)
    answer = server.create_token_response()
    if word().startswith("with "):      # the same, with other fields
        answer = jsonify(dict(answer.get_json(), **json.loads(word()[5:]))), answer.status_code
    if word() == "slow":  # to say what it has done already
        time.sleep(1)
    return answer


@app.route("/device", methods=["POST"])
def device():
    return server.create_endpoint_response(Devices.ENDPOINT_NAME)


@app.route("/login/oauth/access_token", methods=["POST"])
def github():
    """The same, in the form in which GitHub answers who does not ask for JSON."""
    got = server.create_token_response()
    return Response(urllib.parse.urlencode(got.get_json()), got.status_code,
                    content_type="application/x-www-form-urlencoded; charset=utf-8")


@app.route("/app/installations/7/access_tokens", methods=["POST"])
def installed():
    """As GitHub answers an app: 201, the token among other things."""
    got = issue("token", "installation").get_json()
    return jsonify(token=got["token"], expires_at="2030-01-01T00:00:00Z",
                   permissions={"contents": "read"}, repository_selection="all"), 201


def signed(text):
    """With a signature of itsdangerous, no older than an hour."""
    try:
        return jsonify(client=URLSafeTimedSerializer(conf["signing"]).loads(text, max_age=3600))
    except BadSignature:
        return jsonify(error="signature"), 401


@app.route("/signed")
def in_query():
    return signed(request.args.get("key", ""))


@app.route("/signed/<text>/x")
def in_path(text):
    return signed(text)


@app.route("/session")
def in_cookie():
    """Flask's own sessions: signed cookies."""
    return jsonify(client=session["user"]) if "user" in session else (jsonify(error="session"), 401)


@app.route("/oci/token")
def oci():
    """As the token servers of registries answer: one token, twice."""
    want = "Basic " + base64.b64encode(("robot:" + conf["clients"][0]["secret"]).encode()).decode()
    if request.headers.get("Authorization") != want:
        return jsonify(errors=[{"code": "DENIED"}]), 401
    answer = issue("token", "registry " + request.args["scope"]).get_json()
    return jsonify(dict(answer, access_token=answer["token"], expires_in=300))


@app.route("/v2/<path:rest>")
def registry(rest):
    text = request.headers.get("Authorization", "").partition(" ")[2]
    if text not in tokens:
        return jsonify(errors=[]), 401, {"WWW-Authenticate": 'Bearer realm="https://%s/oci/token",'
                                         'service="r"' % request.host}
    return jsonify(client=tokens[text][0], rest=rest)


@app.route("/acme/repo.git/info/lfs/objects/batch", methods=["POST"])
def lfs():
    """As Gitea and GitLab answer: the actions of all objects have one Authorization."""
    text = issue("token", "lfs").get_json()["token"]
    action = {"href": "https://%s/lfs/1" % request.host,
              "header": {"Authorization": "RemoteAuth " + text}}
    found = [{"oid": x["oid"], "size": x["size"], "actions": {"download": action}}
             for x in request.get_json()["objects"]]
    return Response(json.dumps({"transfer": "basic", "objects": found}), headers={
        "Content-Type": "application/vnd.git-lfs+json", "X-Other": "plain",
        "X-Token": "RemoteAuth %s;" % text})


@app.route("/lfs/1")
def stored():
    text = request.headers.get("Authorization", "").partition(" ")[2]
    return Response("object", 200 if tokens.get(text, [0])[0] == "lfs" else 401)


@app.route("/odd/<what>")
def odd(what):
    text = "odd-" + base64.urlsafe_b64encode(os.urandom(24)).decode()
    note(issued=text, to="odd")
    body = {"text": text, "two": json.dumps({"access_token": text, "refresh_token": text + "x"}),
            "broken": '{"access_token":"%s"' % text, "number": '{"access_token":12345678901}',
            "twice": '{"access_token":"%s","access_token":"x"}' % text,
            "list": json.dumps([{"access_token": text}]), "none": '{"a":[1,2]}', "error": "{}",
            "large": json.dumps({"access_token": text, "fill": "x" * 70000}),
            "deep": json.dumps({"a": {"b": ["say " + text]}, "access_token": text}),
            "bytes": json.dumps({"access_token": text + "\r\nX: y"})}[what]
    kind = "text/plain" if what == "text" else "application/json; charset=utf-8"
    return Response(body, 400 if what == "error" else 200, content_type=kind)


@app.route("/app/installations/99/access_tokens", methods=["POST"])
def installation():
    claims = jwt.decode(request.headers["Authorization"].split(" ", 1)[1], conf["public"],
                        claims_options={"iss": {"essential": True, "value": "123"},
                                        "exp": {"essential": True}})
    claims.validate(leeway=5)
    if claims["exp"] - time.time() > 600:
        return jsonify(message="'Expiration time' claim ('exp') is too far in the future"), 401
    return issue("token", "installation", expires_at=time.strftime(
        "%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))), 201


def issue(field, client, **more):
    text = "tok-" + base64.urlsafe_b64encode(os.urandom(24)).decode()
    tokens[text] = (client, time.time() + 3600)
    note(issued=text, to=client)
    return jsonify(**{field: text}, **more)


@app.route("/google", methods=["POST"])
def google():
    claims = jwt.decode(request.form["assertion"], conf["public"])
    claims.validate(leeway=5)
    if claims["iss"] != "robot@project.iam.gserviceaccount.com" or claims["aud"] != conf["google"] \
            or claims.header["kid"] != "key-1":
        return jsonify(error="invalid_grant"), 400
    if "target_audience" not in claims:
        return issue("access_token", "google " + claims["scope"], expires_in=3599,
                     token_type="Bearer")
    text = jwt.encode({"alg": "RS256"}, {"aud": claims["target_audience"], "exp": time.time() + 3600},
                      conf["private"]).decode()
    tokens[text] = ("google id", time.time() + 3600)
    note(issued=text, to="google id")
    return jsonify(id_token=text)


@app.route("/api/<path:rest>", methods=["GET", "POST"])
def resource(rest):
    text = request.headers.get("Authorization", "").partition(" ")[2]
    client, until = tokens.get(text, (None, 0))
    ok = client is not None and time.time() < until
    note(resource=rest, client=client, ok=ok)
    if not ok:
        return jsonify(error="invalid_token"), 401
    return jsonify(client=client, echo=text)


app.run("127.0.0.1", conf["port"], ssl_context=(conf["cert"], conf["key"]), threaded=True)
