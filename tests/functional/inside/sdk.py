"""A vendor's own library makes its first call, and a streamed one: sdk.py CLIENT BASE KEY. Prints
{"text": ..., "streamed": ..., "version": ...} as JSON; `streamed` is null where none was asked for."""
import json
import sys
from importlib.metadata import version

client, base, key = sys.argv[1:4]
SAY = [{"role": "user", "content": "?"}]


def joined(parts):
    return "".join(p for p in parts if p)


def openai_chat(c):
    text = c.chat.completions.create(model="m", messages=SAY).choices[0].message.content
    parts = c.chat.completions.create(model="m", messages=SAY, stream=True)
    return text, joined(p.choices[0].delta.content for p in parts if p.choices), "openai"


def openai():
    from openai import OpenAI
    return openai_chat(OpenAI(api_key=key, base_url=base, max_retries=0))


def azure():
    from openai import AzureOpenAI
    return openai_chat(AzureOpenAI(api_key=key, azure_endpoint=base, api_version="2024-10-21", max_retries=0))


def azure_token():
    from openai import AzureOpenAI
    return openai_chat(AzureOpenAI(azure_ad_token=key, azure_endpoint=base, api_version="2024-10-21", max_retries=0))


def gemini_with(c):
    text = c.models.generate_content(model="m", contents="?").text
    return text, joined(p.text for p in c.models.generate_content_stream(model="m", contents="?")), "google-genai"


def gemini():
    from google import genai
    return gemini_with(genai.Client(api_key=key))


def vertex():
    from google import genai
    from google.oauth2.credentials import Credentials
    return gemini_with(genai.Client(vertexai=True, project="p", location="global", credentials=Credentials(key)))


def anthropic():
    from anthropic import Anthropic
    c = Anthropic(api_key=key, base_url=base, max_retries=0)
    text = c.messages.create(model="m", max_tokens=9, messages=SAY).content[0].text
    with c.messages.stream(model="m", max_tokens=9, messages=SAY) as s:
        return text, joined(s.text_stream), "anthropic"


def mistral():
    try:
        from mistralai.client import Mistral
    except ImportError:
        from mistralai import Mistral
    c = Mistral(api_key=key)
    text = c.chat.complete(model="m", messages=SAY).choices[0].message.content
    return text, joined(e.data.choices[0].delta.content for e in c.chat.stream(model="m", messages=SAY)), "mistralai"


def cohere():
    from cohere import ClientV2
    c = ClientV2(api_key=key)
    text = c.chat(model="m", messages=SAY).message.content[0].text
    parts = c.chat_stream(model="m", messages=SAY)
    return text, joined(p.delta.message.content.text for p in parts if p.type == "content-delta"), "cohere"


def huggingface():
    from huggingface_hub import HfApi, InferenceClient
    name = HfApi(token=key).whoami()["name"]
    c = InferenceClient(base_url=base, api_key=key)
    text = c.chat_completion(model="m", messages=SAY).choices[0].message.content
    parts = c.chat_completion(model="m", messages=SAY, stream=True)
    return (text if name == "octo" else name,
            joined(p.choices[0].delta.content for p in parts if p.choices), "huggingface_hub")


def bedrock():
    import boto3
    c = boto3.client("bedrock-runtime", region_name="eu-west-1", aws_access_key_id=key, aws_secret_access_key="x")
    said = c.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "?"}]}])
    return said["output"]["message"]["content"][0]["text"], None, "boto3"


def gitlab_with(**how):
    from gitlab import Gitlab
    g = Gitlab(base, **how)
    g.auth()
    return g.projects.get(1).description, None, "python-gitlab"


def gitlab():
    return gitlab_with(private_token=key)


def gitlab_oauth():
    return gitlab_with(oauth_token=key)


def github():
    from github import Auth, Github
    g = Github(base_url=base, auth=Auth.Token(key), retry=None)
    return g.get_user().bio, None, "PyGithub"


def bitbucket():
    import requests
    r = requests.get(base + "/2.0/user", headers={"Authorization": "Bearer " + key}, timeout=20)
    r.raise_for_status()
    return r.json()["display_name"], None, "requests"


text, streamed, package = globals()[client]()
print(json.dumps({"text": text, "streamed": streamed, "version": package + " " + version(package)}))
