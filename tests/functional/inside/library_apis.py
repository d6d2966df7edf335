"""The first calls of vendors' libraries for Python, as their documents begin, for library.py: of each API a function that
takes the key and gives one that makes a turn and looks at what came."""
import asyncio
import os
import time

TEXT = "The door is kept."
SAY = [{"role": "user", "content": "Is the door kept?"}]
HEX = "0123456789abcdef"


def same(got, want=TEXT):
    if got != want:
        raise AssertionError("%r instead of %r" % (got, want))


def joined(parts):
    return "".join(p for p in parts if p)


def chats(c):
    """Calls of a client that is made as OpenAI's."""
    def turn(n):
        same(c.chat.completions.create(model="m", messages=SAY).choices[0].message.content)
        parts = c.chat.completions.create(model="m", messages=SAY, stream=True)
        same(joined(p.choices[0].delta.content for p in parts if p.choices))
    return turn


class Entra:
    """A token that is there already, as azure.core wants it."""

    def __init__(self, key):
        self.key = key

    def get_token(self, *scopes, **more):
        from azure.core.credentials import AccessToken
        return AccessToken(self.key, int(time.time()) + 3600)


# ---- models ----

def groq(key):
    from groq import Groq
    return chats(Groq(api_key=key))


def together(key):
    from together import Together
    return chats(Together(api_key=key))


def cerebras(key):
    from cerebras.cloud.sdk import Cerebras
    return chats(Cerebras(api_key=key))


def perplexity(key):
    from perplexity import Perplexity
    c = Perplexity(api_key=key)

    def turn(n):
        same(c.search.create(query="door").results[0].title)
        same(c.chat.completions.create(model="sonar", messages=SAY).choices[0].message.content)
    return turn


def writer(key):
    from writerai import Writer
    c = Writer(api_key=key)
    return lambda n: same(c.chat.chat(model="m", messages=SAY).choices[0].message.content)


def openrouter(key):
    from openrouter import OpenRouter
    c = OpenRouter(api_key=key)
    return lambda n: same(c.chat.send(model="m", messages=SAY).choices[0].message.content)


def replicate(key):
    import replicate as r
    c = r.Client(api_token=key)
    return lambda n: same(c.models.get("acme/door").description)


def elevenlabs(key):
    from elevenlabs.client import ElevenLabs
    c = ElevenLabs(api_key=key)
    return lambda n: same(b"".join(c.text_to_speech.convert("v", text="The door", model_id="m")), TEXT.encode())


def deepgram(key):
    from deepgram import DeepgramClient
    c = DeepgramClient(api_key=key)

    def turn(n):
        said = c.listen.v1.media.transcribe_url(url="https://x.example/a.wav", model="nova-3")
        same(said.results.channels[0].alternatives[0].transcript)
    return turn


def assemblyai(key):
    import assemblyai as aai
    aai.settings.api_key = key
    return lambda n: same(aai.Transcriber().transcribe("https://x.example/a.mp3").text)


def fal(key):
    import fal_client
    c = fal_client.SyncClient(key=key)
    return lambda n: same(c.run("acme/door", arguments={"prompt": "door"})["text"])


def runway(key):
    from runwayml import RunwayML
    c = RunwayML(api_key=key)
    return lambda n: same(c.tasks.retrieve("1").output[0])


# ---- what agents search and remember with ----

def tavily(key):
    from tavily import TavilyClient
    c = TavilyClient(api_key=key)
    return lambda n: same(c.search("Who keeps the door?")["results"][0]["title"])


def exa(key):
    from exa_py import Exa
    c = Exa(api_key=key)
    return lambda n: same(c.search("door").results[0].title)


def firecrawl(key):
    from firecrawl import Firecrawl
    c = Firecrawl(api_key=key)
    return lambda n: same(c.scrape("https://x.example/", formats=["markdown"]).markdown)


def serpapi(key):
    import serpapi as s
    c = s.Client(api_key=key)
    return lambda n: same(c.search(engine="google", q="door")["organic_results"][0]["title"])


def pinecone(key):
    from pinecone import Pinecone
    c = Pinecone(api_key=key)
    return lambda n: same(list(c.list_indexes()), [])


def langsmith(key):
    from langsmith import Client
    c = Client(api_key=key)
    return lambda n: same([x.name for x in c.list_datasets(limit=1)], [TEXT])


# ---- clouds ----

def minio(key):
    from minio import Minio
    c = Minio(endpoint="minio.example.com", access_key=key, secret_key="x")

    def turn(n):
        same([b.name for b in c.list_buckets()], ["acme"])
        same(c.get_object(bucket_name="acme", object_name="door.txt").read(), TEXT.encode())
    return turn


def google_auth(key):
    from google.auth.transport.requests import Request
    from google.oauth2.credentials import Credentials
    c = Credentials(None, refresh_token=key, token_uri="https://oauth2.googleapis.com/token", client_id="door", client_secret="x")

    def turn(n):
        c.refresh(Request())
        same(c.token, "token-of-the-double")
    return turn


def azure_blob(key):
    from azure.storage.blob import BlobServiceClient
    c = BlobServiceClient("https://acme.blob.core.windows.net", credential=Entra(key))
    return lambda n: same([x.name for x in c.list_containers()], ["door"])


def azure_identity(key):
    from azure.identity import ClientSecretCredential

    def turn(n):
        c = ClientSecretCredential("acme", "door", key)
        same(c.get_token("https://vault.azure.net/.default").token, "token-of-the-double")
    return turn


def kubernetes(key):
    from kubernetes import client
    how = client.Configuration(host="https://kube.example.com", api_key={"authorization": "Bearer " + key})
    how.ssl_ca_cert = os.environ["SSL_CERT_FILE"]
    c = client.CoreV1Api(client.ApiClient(how))

    def turn(n):
        same(c.list_pod_for_all_namespaces(watch=False).items[0].metadata.name, "door")
        same(c.list_namespaced_pod("acme").items[0].status.phase, "Running")
    return turn


def digitalocean(key):
    from pydo import Client
    c = Client(token=key)
    return lambda n: same(c.account.get()["account"]["name"])


def cloudflare(key):
    from cloudflare import Cloudflare
    c = Cloudflare(api_token=key)
    return lambda n: same(c.zones.list().result[0].name)


def hetzner(key):
    from hcloud import Client
    c = Client(token=key)
    return lambda n: same(c.servers.get_all(), [])


def linode(key):
    from linode_api4 import LinodeClient
    c = LinodeClient(key)
    return lambda n: same(c.profile().username)


def vault(key):
    import hvac
    c = hvac.Client(url="https://vault.example.com", token=key)
    return lambda n: same(c.secrets.kv.read_secret_version(path="door", raise_on_deleted_version=True)["data"]["data"]["answer"])


def elasticsearch(key):
    from elasticsearch import Elasticsearch
    c = Elasticsearch("https://elastic.example.com", api_key=key, ca_certs=os.environ["SSL_CERT_FILE"])
    return lambda n: same(c.info()["cluster_name"])


def influxdb(key):
    from influxdb_client import InfluxDBClient, Point
    from influxdb_client.client.write_api import SYNCHRONOUS
    c = InfluxDBClient(url="https://influx.example.com", token=key, org="acme", ssl_ca_cert=os.environ["SSL_CERT_FILE"])
    api = c.write_api(write_options=SYNCHRONOUS)
    return lambda n: api.write(bucket="doors", record=Point("door").field("shut", n))


# ---- code and issues ----

def jira(key):
    from jira import JIRA
    c = JIRA("https://acme.atlassian.net", basic_auth=("ann@acme.example", key))
    return lambda n: same(c.issue("DOOR-1").fields.summary)


def jenkins(key):
    from jenkins import Jenkins
    c = Jenkins("https://jenkins.example.com", username="ann", password=key)
    return lambda n: same(c.get_whoami()["fullName"])


def rollbar(key):
    import sys
    import rollbar as r
    sys.argv[1:] = []  # what it sends has the program's arguments, and the key is one
    r.init(key, "production", handler="blocking")
    return lambda n: r.report_message("door %d" % n, "info")


def sentry(key):
    import sentry_sdk
    sentry_sdk.init(dsn="https://%s@o1.ingest.sentry.io/1" % key)

    def turn(n):
        sentry_sdk.capture_message("door %d" % n)
        sentry_sdk.flush(10)
    return turn


def datadog(key):
    from datadog import api, initialize
    initialize(api_key=key, host_name="door", api_host="https://api.datadoghq.com", mute=False)
    return lambda n: same(api.Event.create(title="door", text="shut")["event"]["title"])


def pagerduty(key):
    from pagerduty import RestApiV2Client
    c = RestApiV2Client(key)
    return lambda n: same(c.rget("/users/1")["name"])


# ---- work, money, messages ----

def stripe(key):
    import stripe as s
    s.ca_bundle_path = os.environ["SSL_CERT_FILE"]
    c = s.StripeClient(key)

    def turn(n):
        same(c.v1.customers.create(params={"name": "Ann", "email": "ann@acme.example"}).name)
        same(c.v1.customers.retrieve("cus_1").name)
    return turn


def slack(key):
    from slack_sdk import WebClient
    c = WebClient(token=key)

    def turn(n):
        same(c.auth_test()["team"])
        same(c.chat_postMessage(channel="C1", text="door %d" % n)["message"]["text"])
    return turn


def twilio(key):
    from twilio.rest import Client
    c = Client("AC" + 32 * "1", key)
    return lambda n: same(c.messages.create(to="+15550100", from_="+15550101", body="door").body)


def sendgrid(key):
    from sendgrid import SendGridAPIClient
    from sendgrid.helpers.mail import Mail
    c = SendGridAPIClient(key)
    mail = Mail(from_email="a@b.example", to_emails="c@d.example", subject="door", plain_text_content="shut")
    return lambda n: same(c.send(mail).status_code, 202)


def resend(key):
    import resend as r
    r.api_key = key
    return lambda n: same(r.Emails.send({"from": "a@b.example", "to": ["c@d.example"], "subject": "door", "html": "shut"})["id"], "1")


def mailjet(key):
    from mailjet_rest import Client
    c = Client(auth=(HEX + HEX, key), version="v3.1")
    return lambda n: same(c.send.create(data={"Messages": [{"TextPart": "shut"}]}).json()["Messages"][0]["Status"], "success")


def postmark(key):
    from postmarker.core import PostmarkClient
    c = PostmarkClient(server_token=key)
    return lambda n: same(c.emails.send(From="a@b.example", To="c@d.example", Subject="door", TextBody="shut")["MessageID"], "1")


def telegram(key):
    from telegram import Bot
    loop = asyncio.new_event_loop()
    bot = Bot(key)

    async def talk():
        same((await bot.get_me()).first_name)
        same((await bot.send_message(chat_id=1, text="door")).text)
    loop.run_until_complete(bot.initialize())
    return lambda n: loop.run_until_complete(talk())


def notion(key):
    from notion_client import Client
    c = Client(auth=key)
    return lambda n: same(c.users.list()["results"][0]["name"])


def airtable(key):
    from pyairtable import Api
    table = Api(key).table("app1", "Doors")
    return lambda n: same(table.all()[0]["fields"]["Name"])


def asana(key):
    import asana as a
    how = a.Configuration()
    how.access_token = key
    how.ssl_ca_cert = os.environ["SSL_CERT_FILE"]
    c = a.UsersApi(a.ApiClient(how))
    return lambda n: same(c.get_user("me", {})["name"])


def todoist(key):
    from todoist_api_python.api import TodoistAPI
    c = TodoistAPI(key)
    return lambda n: same(c.get_task("1").content)


def hubspot(key):
    from hubspot import HubSpot
    c = HubSpot(access_token=key, ssl_ca_cert=os.environ["SSL_CERT_FILE"])
    return lambda n: same(c.crm.contacts.basic_api.get_page(limit=1).results[0].properties["firstname"])


def dropbox(key):
    import dropbox as d
    c = d.Dropbox(key, session=d.create_session(ca_certs=os.environ["SSL_CERT_FILE"]))
    return lambda n: same(c.check_user(TEXT).result)


def box(key):
    from box_sdk_gen import BoxClient, BoxDeveloperTokenAuth
    c = BoxClient(auth=BoxDeveloperTokenAuth(token=key))
    return lambda n: same(c.users.get_user_me().name)


def supabase(key):
    from supabase import create_client
    c = create_client("https://acme.supabase.co", key)
    return lambda n: same(c.table("doors").select("*").execute().data[0]["name"])


def square(key):
    from square import Square
    c = Square(token=key)
    return lambda n: same(c.locations.list().locations[0].name)


def browserbase(key):
    from browserbase import Browserbase
    c = Browserbase(api_key=key)
    return lambda n: same(c.sessions.list()[0].status)
