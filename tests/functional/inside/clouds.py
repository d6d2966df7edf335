"""The clouds' own libraries find who they are, with nothing configured: argv names the steps. One JSON line of what came
of each."""
import json
import sys

got = {}
STS, DYNAMO = "https://sts.eu-west-1.amazonaws.com", "https://dynamodb.eu-west-1.amazonaws.com"
STORE, VAULT, RUN = "https://storage.googleapis.com/storage/v1/b/box", "https://box.vault.azure.net", "https://run.example.com"


def step(name, fn):
    try:
        got[name] = fn()
    except Exception as e:      # noqa: B902  every failure is the test's to see
        got[name] = "%s: %s" % (type(e).__name__, e)


def aws():
    import boto3
    session = boto3.Session()
    found = session.get_credentials()
    got["method"], got["key"] = found.method, found.get_frozen_credentials().access_key
    return session.client("sts").get_caller_identity()["Arn"]


def dynamo():
    import boto3
    return boto3.client("dynamodb").get_item(TableName="t", Key={"k": {"S": "v"}})["Item"]["k"]["S"]


def google():
    import google.auth
    import google.auth.transport.requests as transport
    credentials, project = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    got["project"] = project
    answer = transport.AuthorizedSession(credentials).get(STORE, timeout=20)
    got["email"] = credentials.service_account_email
    return answer.json()["name"]


def id_token(audience):
    import google.auth.transport.requests as transport
    from google.auth import compute_engine
    request = transport.Request()
    made = compute_engine.IDTokenCredentials(request, audience, use_metadata_identity_endpoint=True)
    return transport.AuthorizedSession(made).get(RUN + "/", timeout=20).json()["called"]


def azure(kind):
    from azure import identity
    import requests
    made = getattr(identity, kind)()
    got["scope " + kind] = token = made.get_token("https://vault.azure.net/.default").token
    return requests.get(VAULT + "/secrets/a?api-version=7.4", headers={"Authorization": "Bearer " + token},
                        timeout=20).json()["value"]


STEPS = {"aws": aws, "dynamo": dynamo, "google": google, "id": lambda: id_token(RUN),
         "other id": lambda: id_token("https://evil.example.com"),
         "azure": lambda: azure("DefaultAzureCredential"), "managed": lambda: azure("ManagedIdentityCredential")}
for word in sys.argv[1:]:
    step(word, STEPS[word])
print(json.dumps(got))
