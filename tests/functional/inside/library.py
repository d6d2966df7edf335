"""A vendor's own library for Python, as its documents begin: library.py API PACKAGE TURNS KEY. One client makes TURNS
turns of some calls each; every answer is looked at. Prints {"turns": N, "version": ..., "seconds": ...} as JSON.
What is called once a turn stands in library_apis.py."""
import json
import sys
import time
from importlib.metadata import version

import library_apis
from library_apis import SAY, TEXT, chats, joined, same

def openai(key):
    from openai import OpenAI
    c = OpenAI(api_key=key)
    talk = chats(c)

    def turn(n):
        talk(n)
        same(c.models.list().data[0].id, "m")
        same(c.embeddings.create(model="m", input="door", encoding_format="float").data[0].embedding, [0.5, 0.25])
        same(c.files.create(file=("door.txt", b"shut\n" * n), purpose="assistants").id, "file-1")
    return turn


def anthropic(key):
    from anthropic import Anthropic
    c = Anthropic(api_key=key)

    def turn(n):
        same(c.messages.create(model="m", max_tokens=9, messages=SAY).content[0].text)
        with c.messages.stream(model="m", max_tokens=9, messages=SAY) as s:
            same(joined(s.text_stream))
        same(c.messages.count_tokens(model="m", messages=SAY).input_tokens, 3)
        same(c.models.list().data[0].id, "m")
    return turn


def genai(key):
    from google import genai as g
    c = g.Client(api_key=key)

    def turn(n):
        same(c.models.generate_content(model="m", contents="?").text)
        same(joined(p.text for p in c.models.generate_content_stream(model="m", contents="?")))
        same(c.models.count_tokens(model="m", contents="?").total_tokens, 3)
    return turn


def mistral(key):
    try:
        from mistralai.client import Mistral
    except ImportError:
        from mistralai import Mistral
    c = Mistral(api_key=key)

    def turn(n):
        same(c.chat.complete(model="m", messages=SAY).choices[0].message.content)
        same(joined(e.data.choices[0].delta.content for e in c.chat.stream(model="m", messages=SAY)))
        same(c.embeddings.create(model="m", inputs=["door"]).data[0].embedding, [0.5, 0.25])
    return turn


def cohere(key):
    from cohere import ClientV2
    c = ClientV2(api_key=key)

    def turn(n):
        same(c.chat(model="m", messages=SAY).message.content[0].text)
        parts = c.chat_stream(model="m", messages=SAY)
        same(joined(p.delta.message.content.text for p in parts if p.type == "content-delta"))
    return turn


def huggingface(key):
    from huggingface_hub import HfApi, InferenceClient
    api, c = HfApi(token=key), InferenceClient(base_url="https://router.huggingface.co/v1", api_key=key)

    def turn(n):
        same(api.whoami()["name"], "octo")
        same(c.chat_completion(model="m", messages=SAY).choices[0].message.content)
    return turn


def aws(key):
    import boto3 as b
    how = {"region_name": "eu-west-1", "aws_access_key_id": key, "aws_secret_access_key": "x"}
    s3, table = b.client("s3", **how), b.client("dynamodb", **how)

    def turn(n):
        s3.put_object(Bucket="acme", Key="door/%d.txt" % n, Body=b"shut\n" * n)
        same(s3.get_object(Bucket="acme", Key="door.txt")["Body"].read(), TEXT.encode())
        same(s3.list_objects_v2(Bucket="acme", Prefix="door/")["Contents"][0]["Key"], "door.txt")
        same(table.get_item(TableName="doors", Key={"id": {"S": "1"}})["Item"]["text"]["S"])
    return turn


def github(key):
    from github import Auth, Github
    g = Github(auth=Auth.Token(key), retry=None, seconds_between_requests=0, seconds_between_writes=0)

    def turn(n):
        same(g.get_user().bio)
        repo = g.get_repo("acme/door")
        same(repo.get_issue(7).title)
        same(repo.create_issue(title="hinge %d" % n, body="oil it").number, 8)
    return turn


def gitlab(key):
    from gitlab import Gitlab
    g = Gitlab("https://gitlab.com", private_token=key)

    def turn(n):
        project = g.projects.get(1)
        same(project.description)
        same(project.issues.list(get_all=False)[0].title)
    return turn


def main():
    name, package, turns, key = sys.argv[1].replace("-", "_"), sys.argv[2], int(sys.argv[3]), sys.argv[4]
    began = time.monotonic()
    turn = (globals().get(name) or getattr(library_apis, name))(key)
    for n in range(turns):
        turn(n + 1)
    print(json.dumps({"turns": turns, "version": version(package),
                      "seconds": round(time.monotonic() - began, 2)}))


if __name__ == "__main__":
    main()
