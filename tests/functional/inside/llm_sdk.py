"""A vendor's own library makes a call, and a streamed one where it can: llm_sdk.py CLIENT KEY. Prints the tokens of
each as the library has them, [[sent, of these cached, answered], ...]: all that was sent, the cached among them."""
import json
import sys

client, key = sys.argv[1:3]
SAY = [{"role": "user", "content": "?"}]


def chat_usage(u):
    return [u.prompt_tokens, u.prompt_tokens_details.cached_tokens, u.completion_tokens]


def openai():
    from openai import OpenAI
    yield from both(OpenAI(api_key=key, max_retries=0))


def azure():
    from openai import AzureOpenAI
    yield from both(AzureOpenAI(api_key=key, azure_endpoint="https://acme.openai.azure.com", api_version="2024-10-21", max_retries=0))


def both(c):
    yield chat_usage(c.chat.completions.create(model="m", messages=SAY).usage)
    parts = c.chat.completions.create(model="m", messages=SAY, stream=True, stream_options={"include_usage": True})
    yield chat_usage([p.usage for p in parts if p.usage][-1])


def responses():
    from openai import OpenAI
    c = OpenAI(api_key=key, max_retries=0)

    def usage(u):
        return [u.input_tokens, u.input_tokens_details.cached_tokens, u.output_tokens]
    yield usage(c.responses.create(model="m", input="?").usage)
    yield usage([e.response.usage for e in c.responses.create(model="m", input="?", stream=True)
                 if e.type == "response.completed"][-1])


def anthropic():
    from anthropic import Anthropic
    c = Anthropic(api_key=key, max_retries=0)

    def usage(u):
        return [u.input_tokens + u.cache_read_input_tokens + u.cache_creation_input_tokens,
                u.cache_read_input_tokens, u.output_tokens]
    yield usage(c.messages.create(model="m", max_tokens=9, messages=SAY).usage)
    with c.messages.stream(model="m", max_tokens=9, messages=SAY) as s:
        yield usage(s.get_final_message().usage)


def gemini():
    from google import genai
    c = genai.Client(api_key=key)

    def usage(u):
        return [u.prompt_token_count, u.cached_content_token_count,
                u.candidates_token_count + u.thoughts_token_count]
    yield usage(c.models.generate_content(model="m", contents="?").usage_metadata)
    yield usage(list(c.models.generate_content_stream(model="m", contents="?"))[-1].usage_metadata)


def bedrock():
    import boto3
    c = boto3.client("bedrock-runtime", region_name="eu-west-1", aws_access_key_id=key, aws_secret_access_key="x")
    u = c.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "?"}]}])["usage"]
    yield [u["inputTokens"] + u["cacheReadInputTokens"], u["cacheReadInputTokens"], u["outputTokens"]]
    parts = c.converse_stream(modelId="m", messages=[{"role": "user", "content": [{"text": "?"}]}])["stream"]
    u = [p["metadata"]["usage"] for p in parts if "metadata" in p][-1]
    yield [u["inputTokens"] + u["cacheReadInputTokens"], u["cacheReadInputTokens"], u["outputTokens"]]


def ollama():
    from ollama import Client
    c = Client(host="https://ollama.example.com", headers={"Authorization": "Bearer " + key})
    r = c.chat(model="m", messages=SAY)
    yield [r.prompt_eval_count, 0, r.eval_count]
    r = list(c.chat(model="m", messages=SAY, stream=True))[-1]
    yield [r.prompt_eval_count, 0, r.eval_count]


print(json.dumps(list(globals()[client]())))
