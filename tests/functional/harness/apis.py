"""The APIs whose client libraries libraries.t drives: one row each, with the rule of a policy, the hosts, the packages
that speak it, and how its double answers."""
import json
import re

from . import answers

TEXT = answers.TEXT
BEARER = {"bearer": "KEY"}
AWS = {"aws": "KEY"}
AMAZON = ["acme.s3.eu-west-1.amazonaws.com", "dynamodb.eu-west-1.amazonaws.com"]


def header(name, prefix=None, **more):
    return {"header": dict({"name": name, "secret": "KEY"}, **dict({"prefix": prefix} if prefix else {}, **more))}


def basic(user):
    return {"basic": {"user": user, "password": "KEY"}}


def written(place, **more):
    """Where the client wrote its placeholder."""
    return {"placeholder": dict({"secret": "KEY", "in": place}, **more)}


class Api:
    """rule: a preset's name, what `with` holds of KEY, or a list of rules; None: its key is public, and stands in the
    program as it is. answers: (a regular expression for "METHOD
    /path", an answer); the first that fits is given. packages: {language: package}, as the registry of it has it."""

    def __init__(self, name, rule, hosts, *found, prefix="key-", kind=None, env=None, **packages):
        self.name, self.rule, self.hosts, self.answers, self.packages = name, rule, hosts, found, packages
        self.prefix, self.kind, self.env = prefix, kind, env or {}

    @property
    def aws(self):
        return isinstance(self.rule, dict) and "aws" in self.rule

    def rules(self):
        """What a policy says of it; KEY is the secret."""
        if self.rule is None:
            return [{"allow": self.hosts}]
        if isinstance(self.rule, str):
            return [{"use": self.rule, "secret": "KEY"}]
        return self.rule if isinstance(self.rule, list) else [{"allow": self.hosts, "with": self.rule}]

    def handler(self):
        """What answers at its hosts."""
        known = [(re.compile(path), as_answer(answer)) for path, answer in self.answers]

        def handle(req, conn):
            line = "%s %s" % (req.method, req.path)
            for path, answer in known:
                if path.search(line):
                    answer(req, conn)
                    return
            conn.reply(req, 404, {"message": "the double has no " + line})
        return handle


# ---- answers ----

def as_answer(answer):
    if callable(answer):
        return answer
    if isinstance(answer, tuple):
        return raw(*answer)
    return raw(200, answer)


def raw(status, body=b"", kind="application/json", **fields):
    headers = [(n.replace("_", "-"), v) for n, v in fields.items()]
    return lambda req, conn: conn.reply(req, status, body, headers, kind=kind)


def pages(req, conn):
    """A bucket of S3: objects, and what is in it."""
    if req.method == "PUT":
        conn.reply(req, 200, b"", [("ETag", '"d"')])
    elif "location" in req.query:
        conn.reply(req, 200, "<LocationConstraint>us-east-1</LocationConstraint>", kind="application/xml")
    elif "list-type" in req.query:
        conn.reply(req, 200, "<ListBucketResult><Name>acme</Name><Contents><Key>door.txt</Key><Size>17</Size></Contents>"
                   "</ListBucketResult>", kind="application/xml")
    elif req.path == "/":
        conn.reply(req, 200, "<ListAllMyBucketsResult><Owner><ID>1</ID></Owner><Buckets><Bucket><Name>acme</Name>"
                   "<CreationDate>2026-01-01T00:00:00.000Z</CreationDate></Bucket></Buckets></ListAllMyBucketsResult>", kind="application/xml")
    else:
        conn.reply(req, 200, TEXT, [("ETag", '"d"'), ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")],
                   kind="text/plain")


def vectors(req, conn):
    """Embeddings: in base64 where the client asked for them so."""
    asked = req.json().get("encoding_format") == "base64"
    conn.reply(req, 200, {"object": "list", "id": "e", "model": "m", "usage": {"total_tokens": 1, "prompt_tokens": 1},
                          "data": [{"object": "embedding", "index": 0,
                                    "embedding": "AAAAPwAAgD4=" if asked else [0.5, 0.25]}]})


def datasets(req, conn):
    """One, on a first page."""
    more = re.search(r"offset=[1-9]", req.query)
    conn.reply(req, 200, [] if more else [{"id": "00000000-0000-4000-8000-000000000001", "name": TEXT,
                                           "created_at": "2026-01-01T00:00:00Z"}])


MODELS = {"object": "list", "has_more": False, "first_id": "m", "last_id": "m", "data": [
    {"id": "m", "type": "model", "object": "model", "created": 1, "owned_by": "x", "display_name": "m",
     "created_at": "2026-01-01T00:00:00Z"}]}
USER = {"login": "octo", "id": 1, "node_id": "u", "bio": TEXT, "type": "User", "url": "https://api.github.com/user"}
REPO = {"id": 1, "name": "door", "full_name": "acme/door", "description": TEXT, "owner": USER,
        "url": "https://api.github.com/repos/acme/door"}
FILE = {"id": "file-1", "object": "file", "bytes": 5, "created_at": 1, "filename": "door.txt", "purpose": "assistants",
        "status": "processed"}
ISSUE = {"id": 7, "number": 7, "title": TEXT, "url": "https://api.github.com/x"}
ITEM = json.dumps({"Item": {"id": {"S": "1"}, "text": {"S": TEXT}}})
PODS = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [
    {"metadata": {"name": "door", "namespace": "acme"}, "spec": {"containers": [{"name": "c"}]},
     "status": {"phase": "Running"}}]}
CALLER = ('<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><UserId>%s'
          "</UserId><Account>1</Account><Arn>arn:aws:iam::1:user/ann</Arn></GetCallerIdentityResult>"
          "</GetCallerIdentityResponse>" % TEXT)
CHAT = ("/chat/completions$", answers.chat)
ONE = {"id": "1", "object": "thing", "name": TEXT}
SENTRY = "0123456789abcdef"
ELASTIC = raw(200, {"name": "door", "cluster_name": TEXT, "cluster_uuid": "u", "tagline": "You Know, for Search", "version": {
    "number": "9.5.1", "build_flavor": "default"}}, X_Elastic_Product="Elasticsearch")
BLOBS = ('<?xml version="1.0"?><EnumerationResults ServiceEndpoint="https://acme.blob.core.windows.net/"><Containers>'
         "<Container><Name>door</Name><Properties><Etag>e</Etag></Properties></Container></Containers><NextMarker/>"
         "</EnumerationResults>")
ENTRA = "https://login.microsoftonline.com/acme"
TENANT = {"token_endpoint": ENTRA + "/oauth2/v2.0/token", "authorization_endpoint": ENTRA + "/oauth2/v2.0/authorize",
          "issuer": ENTRA + "/v2.0", "tenant_region_scope": "EU"}
TOKEN = {"token_type": "Bearer", "expires_in": 3600, "ext_expires_in": 3600, "access_token": "token-of-the-double"}
PAGE = {"object": "list", "results": [{"object": "user", "id": "1", "type": "person", "name": TEXT}],
        "next_cursor": None, "has_more": False}

APIS = (
    # models
    Api("openai", "openai", ["api.openai.com"], CHAT, ("/v1/embeddings$", vectors), ("GET /v1/models$", MODELS),
        ("/v1/files$", FILE), python="openai", node="openai",
        go="github.com/openai/openai-go/v3", java="com.openai:openai-java"),
    Api("anthropic", "anthropic", ["api.anthropic.com"], ("/v1/messages$", answers.messages),
        ("/v1/messages/count_tokens$", {"input_tokens": 3}), ("GET /v1/models$", MODELS),
        python="anthropic", node="@anthropic-ai/sdk", go="github.com/anthropics/anthropic-sdk-go/v2",
        java="com.anthropic:anthropic-java"),
    Api("genai", "gemini", ["generativelanguage.googleapis.com"], (r":(stream)?[gG]enerateContent$", answers.gemini),
        (":countTokens$", {"totalTokens": 3}), python="google-genai", node="@google/genai",
        go="google.golang.org/genai", java="com.google.genai:google-genai"),
    Api("mistral", "mistral", ["api.mistral.ai"], CHAT, ("/v1/embeddings$", vectors), python="mistralai",
        node="@mistralai/mistralai"),
    Api("cohere", "cohere", ["api.cohere.com"], ("/v2/chat$", answers.cohere), python="cohere", node="cohere-ai",
        go="github.com/cohere-ai/cohere-go/v2"),
    Api("huggingface", "huggingface", ["huggingface.co", "router.huggingface.co"], CHAT,
        ("/api/whoami-v2$", {"type": "user", "name": "octo", "orgs": []}),
        python="huggingface_hub", node="@huggingface/inference"),
    Api("groq", "groq", ["api.groq.com"], CHAT, python="groq", node="groq-sdk"),
    Api("openrouter", "openrouter", ["openrouter.ai"], CHAT, python="openrouter"),
    Api("together", BEARER, ["api.together.ai", "api-inference.together.ai"], CHAT, python="together", node="together-ai"),
    Api("cerebras", BEARER, ["api.cerebras.ai"], CHAT, ("/tcp_warming", {}), python="cerebras-cloud-sdk",
        node="@cerebras/cerebras_cloud_sdk"),
    Api("perplexity", BEARER, ["api.perplexity.ai"], CHAT, (
        "/search$", {"id": "1", "results": [{"title": TEXT, "url": "https://x.example", "snippet": "s"}]}),
        python="perplexityai"),
    Api("writer", BEARER, ["api.writer.com"], ("/v1/chat$", answers.chat), python="writer-sdk"),
    Api("replicate", BEARER, ["api.replicate.com"],
        ("GET /v1/models/acme/door$", {"owner": "acme", "name": "door", "description": TEXT, "visibility": "public",
                                       "url": "https://x.example", "run_count": 1}),
        python="replicate", node="replicate"),
    Api("elevenlabs", header("xi-api-key"), ["api.elevenlabs.io"],
        ("POST /v1/text-to-speech/", (200, TEXT, "audio/mpeg")), python="elevenlabs"),
    Api("deepgram", header("authorization", "Token "), ["api.deepgram.com"], (
        "POST /v1/listen$", {"metadata": {"request_id": "1"}, "results": {"channels": [{"alternatives": [
            {"transcript": TEXT, "confidence": 1}]}]}}), python="deepgram-sdk", node="@deepgram/sdk"),
    Api("assemblyai", header("authorization"), ["api.assemblyai.com"], (
        "/v2/transcript", {"id": "1", "status": "completed", "text": TEXT, "audio_url": "https://x.example/a.mp3",
                           "language_model": "m", "acoustic_model": "m"}), python="assemblyai", node="assemblyai"),
    Api("fal", header("authorization", "Key "), ["fal.run"], ("POST /acme/door$", {"text": TEXT}),
        python="fal-client", node="@fal-ai/client"),
    Api("runway", BEARER, ["api.dev.runwayml.com"], ("GET /v1/tasks/1$", {
        "id": "1", "status": "SUCCEEDED", "createdAt": "2026-01-01T00:00:00Z", "output": [TEXT]}), python="runwayml"),
    Api("ai-openai", "openai", ["api.openai.com"], CHAT, node="@ai-sdk/openai", go="github.com/sashabaranov/go-openai"),
    Api("ai-anthropic", "anthropic", ["api.anthropic.com"], ("/v1/messages$", answers.messages), node="@ai-sdk/anthropic"),
    Api("langchain", "openai", ["api.openai.com"], CHAT, node="@langchain/openai", java="dev.langchain4j:langchain4j-open-ai"),

    # what agents search and remember with
    Api("tavily", BEARER, ["api.tavily.com"], ("POST /search$", {
        "query": "?", "images": [], "results": [{"title": TEXT, "url": "https://x.example", "content": "c", "score": 1}]}),
        prefix="tvly-", python="tavily-python", node="@tavily/core"),
    Api("exa", header("x-api-key"), ["api.exa.ai"], ("POST /search$", {
        "requestId": "1", "results": [{"title": TEXT, "url": "https://x.example", "id": "1"}]}), python="exa-py", node="exa-js"),
    Api("firecrawl", BEARER, ["api.firecrawl.dev"], ("/v[12]/scrape$", {
        "success": True, "data": {"markdown": TEXT, "metadata": {"statusCode": 200}}}), prefix="fc-", python="firecrawl-py"),
    Api("serpapi", {"query": {"api_key": "KEY"}}, ["serpapi.com"], ("GET /search", {"organic_results": [{"title": TEXT}]}),
        python="serpapi"),
    Api("pinecone", header("api-key"), ["api.pinecone.io"], ("GET /indexes$", {"indexes": []}), python="pinecone",
        node="@pinecone-database/pinecone"),
    Api("qdrant", header("api-key"), ["qdrant.example.com"], ("GET /collections$", {
        "result": {"collections": [{"name": "door"}]}, "status": "ok", "time": 0.1}),
        ("GET /$", {"title": "qdrant", "version": "1.20.0"}), node="@qdrant/js-client-rest"),
    Api("langsmith", header("x-api-key"), ["api.smith.langchain.com"], (
        "GET /datasets", datasets),
        ("GET /info", {"version": "1"}), python="langsmith", node="langsmith"),
    Api("okhttp", BEARER, ["doors.acme.example"], ("GET /door$", (200, TEXT, "text/plain")),
        java="com.squareup.okhttp3:okhttp"),
    Api("upstash", BEARER, ["door.upstash.io"], ("POST /", [{"result": "OK"}]), node="@upstash/redis"),

    # clouds
    Api("aws", AWS, AMAZON,
        ("POST /$", (200, ITEM, "application/x-amz-json-1.0")), ("", pages), python="boto3"),
    Api("s3", AWS, AMAZON, ("", pages), node="@aws-sdk/client-s3",
        go="github.com/aws/aws-sdk-go-v2/service/s3", java="software.amazon.awssdk:s3"),
    Api("dynamodb", AWS, AMAZON, ("", (200, ITEM, "application/x-amz-json-1.0")),
        node="@aws-sdk/client-dynamodb"),
    Api("sts", AWS, ["sts.eu-west-1.amazonaws.com"], ("POST /$", (200, CALLER, "text/xml")),
        go="github.com/aws/aws-sdk-go-v2/service/sts", java="software.amazon.awssdk:sts"),
    Api("bedrock", AWS, ["bedrock-runtime.eu-west-1.amazonaws.com"], ("POST /model/acme.m/converse$", {
        "output": {"message": {"role": "assistant", "content": [{"text": TEXT}]}}, "stopReason": "end_turn", "metrics": {
            "latencyMs": 1}, "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}),
        go="github.com/aws/aws-sdk-go-v2/service/bedrockruntime", java="software.amazon.awssdk:bedrockruntime"),
    Api("minio", AWS, ["minio.example.com"], ("", pages), python="minio",
        go="github.com/minio/minio-go/v7", java="io.minio:minio"),
    Api("google-storage", BEARER, ["storage.googleapis.com"],
        ("GET /storage/v1/b/acme/o$", {"items": [{"name": "door.txt", "bucket": "acme"}]}),
        node="@google-cloud/storage"),
    Api("google-auth", [{"allow": "oauth2.googleapis.com/token", "methods": ["POST"],
                         "with": written({"body": "refresh_token"})}], ["oauth2.googleapis.com"], ("POST /token$", TOKEN),
        python="google-auth", java="com.google.auth:google-auth-library-oauth2-http"),
    Api("azure-blob", BEARER, ["acme.blob.core.windows.net"], ("GET /$", (200, BLOBS, "application/xml")),
        python="azure-storage-blob"),
    Api("azure-identity", [
        {"allow": "login.microsoftonline.com/acme/oauth2/v2.0/token", "methods": ["POST"], "with": written({"body": "client_secret"})},
        {"allow": "login.microsoftonline.com", "access": "read-only"}], ["login.microsoftonline.com"],
        ("POST /acme/oauth2/v2.0/token$", TOKEN), ("GET /acme/v2.0/.well-known/openid-configuration$", TENANT),
        ("GET /common/discovery/instance$", {"tenant_discovery_endpoint": ENTRA + "/v2.0/.well-known/openid-configuration",
                                             "metadata": []}), python="azure-identity", node="@azure/identity",
        go="github.com/Azure/azure-sdk-for-go/sdk/azidentity", java="com.azure:azure-identity"),
    Api("kubernetes", BEARER, ["kube.example.com"], ("GET /api/v1/pods$", PODS), ("GET /api/v1/namespaces/acme/pods$", PODS),
        python="kubernetes", java="io.fabric8:kubernetes-client"),
    Api("digitalocean", BEARER, ["api.digitalocean.com"], ("GET /v2/account$", {"account": {"uuid": "1", "name": TEXT}}),
        python="pydo", go="github.com/digitalocean/godo"),
    Api("cloudflare", BEARER, ["api.cloudflare.com"], ("GET /client/v4/zones$", {
        "success": True, "errors": [], "messages": [], "result": [{"id": "1", "name": TEXT}],
        "result_info": {"page": 1, "per_page": 20, "count": 1, "total_count": 1}}), python="cloudflare"),
    Api("hetzner", BEARER, ["api.hetzner.cloud"], ("GET /v1/servers$", {"servers": [], "meta": {"pagination": {
        "page": 1, "per_page": 50, "previous_page": None, "next_page": None, "last_page": 1, "total_entries": 0}}}),
        python="hcloud"),
    Api("linode", BEARER, ["api.linode.com"], ("GET /v4/profile", {"username": TEXT, "email": "a@b.example"}),
        python="linode-api4"),
    Api("vault", header("x-vault-token"), ["vault.example.com"], ("GET /v1/secret/data/door$", {
        "request_id": "1", "data": {"data": {"answer": TEXT}, "metadata": {"version": 1}}}),
        python="hvac", node="node-vault", go="github.com/hashicorp/vault/api"),
    Api("elasticsearch", header("authorization", "ApiKey "), ["elastic.example.com"], ("", ELASTIC),
        python="elasticsearch", node="@elastic/elasticsearch"),
    Api("influxdb", header("authorization", "Token "), ["influx.example.com"], ("POST /api/v2/write$", (204,)),
        python="influxdb-client", go="github.com/influxdata/influxdb-client-go/v2"),

    # code and issues
    Api("github", "github", ["api.github.com"], ("GET /user$", USER), ("GET /repos/acme/door$", REPO),
        ("POST /repos/acme/door/issues$", (201, dict(ISSUE, number=8))), ("GET /repos/acme/door/issues/7$", ISSUE),
        kind="github-pat", prefix="ghp_", python="PyGithub", node="octokit",
        go="github.com/google/go-github/v74", java="org.kohsuke:github-api"),
    Api("gitlab", "gitlab", ["gitlab.com"], ("/projects/1$", {"id": 1, "description": TEXT}),
        ("/projects/1/issues$", [{"id": 7, "iid": 7, "title": TEXT}]), python="python-gitlab", node="@gitbeaker/rest",
        go="gitlab.com/gitlab-org/api/client-go"),
    Api("jira", basic("ann@acme.example"), ["acme.atlassian.net"],
        ("GET /rest/api/2/serverInfo$", {"versionNumbers": [1001, 0, 0], "version": "1001.0.0", "deploymentType": "Cloud",
                                         "baseUrl": "https://acme.atlassian.net"}),
        ("GET /rest/api/2/issue/DOOR-1$", {"id": "1", "key": "DOOR-1", "self": "https://acme.atlassian.net/rest/api/2/issue/1",
                                           "fields": {"summary": TEXT}}), python="jira"),
    Api("linear", header("authorization"), ["api.linear.app"], ("POST /graphql$", {"data": {"viewer": {
        "id": "1", "name": TEXT, "email": "a@b.example", "displayName": "a"}}}), prefix="lin_api_", node="@linear/sdk"),
    Api("jenkins", basic("ann"), ["jenkins.example.com"], ("GET /me/api/json$", {"fullName": TEXT}), python="python-jenkins"),
    Api("sentry", written("header", name="x-sentry-auth"), ["o1.ingest.sentry.io"], ("POST /api/1/envelope/$", {"id": "1"}),
        prefix=SENTRY, python="sentry-sdk", java="io.sentry:sentry"),
    Api("sentry-public", None, ["o2.ingest.sentry.io"], ("POST /api/1/envelope/$", {"id": "1"}), prefix=SENTRY, node="@sentry/node",
        go="github.com/getsentry/sentry-go"),
    Api("rollbar", written(["header", {"body": "/access_token"}], name="x-rollbar-access-token", count=2), ["api.rollbar.com"],
        ("POST /api/1/item/$", {"err": 0, "result": {"id": None, "uuid": "1"}}), python="rollbar"),
    Api("rollbar-go", header("x-rollbar-access-token"), ["api.rollbar.com"], (
        "POST /api/1/item/$", {"err": 0, "result": {"id": None, "uuid": "1"}}), go="github.com/rollbar/rollbar-go"),
    Api("datadog", header("dd-api-key"), ["api.datadoghq.com"], ("POST /api/v1/events$", (202, {
        "status": "ok", "event": {"id": 1, "title": TEXT}})), python="datadog"),
    Api("pagerduty", header("authorization", "Token token="), ["api.pagerduty.com"],
        ("GET /users/1$", {"user": {"id": "1", "name": TEXT}}), python="pagerduty"),

    # work, money, messages
    Api("stripe", BEARER, ["api.stripe.com"], ("/v1/customers", {"id": "cus_1", "object": "customer", "name": TEXT}),
        prefix="sk_live_", python="stripe", node="stripe", go="github.com/stripe/stripe-go/v82", java="com.stripe:stripe-java"),
    Api("slack", BEARER, ["slack.com"], ("/api/(auth.test|chat.postMessage)$", {
        "ok": True, "ts": "1.1", "channel": "C1", "team": TEXT, "message": {"text": TEXT}}), prefix="xoxb-",
        python="slack_sdk", node="@slack/web-api", java="com.slack.api:slack-api-client"),
    Api("slack-go", written(["header", {"body": "token"}], name="authorization"), ["slack.com"],
        ("/api/(auth.test|chat.postMessage)$", {"ok": True, "ts": "1.1", "channel": "C1", "team": TEXT}), prefix="xoxb-",
        go="github.com/slack-go/slack"),
    Api("twilio", basic("AC" + 32 * "1"), ["api.twilio.com"], ("POST .*/Messages.json$", (201, {
        "sid": "SM1", "body": TEXT, "status": "queued"})), python="twilio", node="twilio"),
    Api("sendgrid", BEARER, ["api.sendgrid.com"], ("POST /v3/mail/send$", (202,)), prefix="SG.", python="sendgrid",
        node="@sendgrid/mail"),
    Api("resend", BEARER, ["api.resend.com"], ("POST /emails$", {"id": "1"}), prefix="re_", python="resend", node="resend"),
    Api("mailjet", basic("0123456789abcdef0123456789abcdef"), ["api.mailjet.com"], ("POST /v3.1/send$", {
        "Messages": [{"Status": "success"}]}), python="mailjet-rest"),
    Api("mailgun", basic("api"), ["api.mailgun.net"], ("POST /v3/acme.example/messages$", {"id": "1", "message": "Queued."}),
        node="mailgun.js"),
    Api("postmark", header("x-postmark-server-token"), ["api.postmarkapp.com"], ("POST /email$", {
        "MessageID": "1", "ErrorCode": 0, "Message": "OK", "To": "a@b.example", "SubmittedAt": "2026-01-01T00:00:00Z"}),
        python="postmarker", node="postmark"),
    Api("telegram", written("path"), ["api.telegram.org"], ("/getMe$", {"ok": True, "result": {
        "id": 1, "is_bot": True, "first_name": TEXT, "username": "door"}}), ("/sendMessage$", {"ok": True, "result": {
            "message_id": 1, "date": 1, "chat": {"id": 1, "type": "private"}, "text": TEXT}}), prefix="123456:",
        python="python-telegram-bot", node="grammy", go="github.com/go-telegram-bot-api/telegram-bot-api/v5"),
    Api("discord", header("authorization", "Bot "), ["discord.com"], ("GET /api/v(9|10)/users/@me$", {
        "id": "1", "username": TEXT}), node="@discordjs/rest", go="github.com/bwmarrin/discordgo"),
    Api("notion", BEARER, ["api.notion.com"], ("GET /v1/users$", PAGE), prefix="ntn_", python="notion-client",
        node="@notionhq/client"),
    Api("airtable", BEARER, ["api.airtable.com"], ("GET /v0/app1/Doors", {"records": [
        {"id": "rec1", "createdTime": "2026-01-01T00:00:00.000Z", "fields": {"Name": TEXT}}]}), prefix="pat",
        python="pyairtable", node="airtable"),
    Api("asana", BEARER, ["app.asana.com"], ("GET /api/1.0/users/me$", {"data": {"gid": "1", "name": TEXT}}), python="asana"),
    Api("todoist", BEARER, ["api.todoist.com"], ("GET /api/v1/tasks/1$", {
        "id": "1", "content": TEXT, "description": "", "project_id": "1", "section_id": None, "parent_id": None,
        "labels": [], "priority": 1, "due": None, "deadline": None, "duration": None, "collapsed": False, "is_collapsed": False,
        "child_order": 1, "order": 1, "responsible_uid": None, "assigned_by_uid": None, "completed_at": None, "user_id": "1",
        "added_by_uid": "1", "creator_id": "1", "added_at": "2026-01-01T00:00:00.000000Z", "checked": False, "is_deleted": False,
        "created_at": "2026-01-01T00:00:00.000000Z", "updated_at": "2026-01-01T00:00:00.000000Z", "note_count": 0,
        "day_order": 1, "goal_ids": []}), python="todoist-api-python"),
    Api("hubspot", BEARER, ["api.hubapi.com"], ("GET /crm/[^ ]*contacts$", {"results": [
        {"id": "1", "properties": {"firstname": TEXT}, "createdAt": "2026-01-01T00:00:00Z",
         "updatedAt": "2026-01-01T00:00:00Z", "archived": False}]}), prefix="pat-na1-", python="hubspot-api-client"),
    Api("dropbox", BEARER, ["api.dropboxapi.com"], ("POST /2/check/user$", {"result": TEXT}), prefix="sl.", python="dropbox",
        node="dropbox"),
    Api("box", BEARER, ["api.box.com"], ("GET /2.0/users/me$", {"id": "1", "type": "user", "name": TEXT}), python="box-sdk-gen"),
    Api("algolia", header("x-algolia-api-key"), ["acme1-dsn.algolia.net"], ("GET /1/indexes$", {
        "items": [{"name": TEXT, "createdAt": "x", "updatedAt": "x", "entries": 1, "dataSize": 1, "fileSize": 1,
                   "lastBuildTimeS": 1, "numberOfPendingTasks": 0, "pendingTask": False}], "nbPages": 1}),
        node="algoliasearch"),
    Api("supabase", header("apikey", **{"and": "bearer"}), ["acme.supabase.co"], ("GET /rest/v1/doors", [{"id": 1, "name": TEXT}]),
        python="supabase", node="@supabase/supabase-js"),
    Api("contentful", BEARER, ["cdn.contentful.com"], ("/entries/1$", {
        "sys": {"id": "1", "type": "Entry", "contentType": {"sys": {"id": "door", "type": "Link", "linkType": "ContentType"}}},
        "fields": {"name": TEXT}}), ("/entries$", {"sys": {"type": "Array"}, "total": 1, "skip": 0, "limit": 1, "items": [
            {"sys": {"id": "1", "type": "Entry"}, "fields": {"name": TEXT}}]}), node="contentful"),
    Api("square", BEARER, ["connect.squareup.com"], ("GET /v2/locations$", {"locations": [{"id": "1", "name": TEXT}]}),
        python="squareup"),
    Api("intercom", BEARER, ["api.intercom.io"], ("GET /me$", {"type": "admin", "id": "1", "name": TEXT, "email": "a@b.example"}),
        node="intercom-client"),
    Api("browserbase", header("x-bb-api-key"), ["api.browserbase.com"], ("GET /v1/sessions$", [
        {"id": "1", "status": TEXT}]), python="browserbase"),
)
