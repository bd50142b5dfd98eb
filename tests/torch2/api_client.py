"""PyPI's openai and anthropic as clients: api_client.py URL < asks > answers, both JSON, one after the other.

An ask: {api: chat, completions, responses, embeddings, messages or raw; stream, tokens, prompt; path and body of raw}. `test` goes to the stand-in server. An answer:
{text, input, output: tokens that the client was told, or null}.
"""
import json
import sys
import urllib.request

import anthropic
import openai

URL, KEY = sys.argv[1], "sk-nobody-may-keep-it"


def openai_stream(api, events):
    text, usage = "", None
    for event in events:
        if api == "responses":
            text += event.delta if event.type == "response.output_text.delta" else ""
            usage = event.response.usage if event.type == "response.completed" else usage
            continue
        for choice in event.choices:
            text += (choice.delta.content if api == "chat" else choice.text) or ""
        usage = event.usage or usage
    return text, usage


def with_openai(ask, extra):
    client = openai.OpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0, timeout=60)
    api, words = ask["api"], {"model": "m", "extra_body": extra}
    if api == "embeddings":
        usage = client.embeddings.create(input="x", encoding_format="float", **words).usage
        return {"text": "", "input": usage.prompt_tokens, "output": None}
    words["stream"] = ask["stream"]
    create = client.chat.completions if api == "chat" else getattr(client, api)
    words["messages" if api == "chat" else "input" if api == "responses" else "prompt"] = [{"role": "user", "content": "x"}] if api == "chat" else "x"
    answer = create.create(**words)
    if ask["stream"]:
        text, usage = openai_stream(api, answer)
    else:
        text = answer.choices[0].message.content if api == "chat" else answer.choices[0].text or "" if api == "completions" else answer.output_text
        usage = answer.usage
    read, made = ("input_tokens", "output_tokens") if api == "responses" else ("prompt_tokens", "completion_tokens")
    return {"text": text, "input": getattr(usage, read, None), "output": getattr(usage, made, None)}


def with_anthropic(ask, extra):
    client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=60)
    words = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "x"}], "extra_body": extra}
    if ask.get("count"):
        return {"text": "", "input": client.messages.count_tokens(model="m", messages=words["messages"], extra_body=extra).input_tokens, "output": None}
    if ask["stream"]:
        with client.messages.stream(**words) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(**words)
    text = "".join(getattr(block, "text", "") or getattr(block, "thinking", "") or "" for block in message.content)
    return {"text": text, "input": message.usage.input_tokens, "output": message.usage.output_tokens}


def raw(ask, extra):
    request = urllib.request.Request(URL + ask["path"], json.dumps({"model": "m", "stream": ask["stream"], **extra}).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return {"text": answer.read().decode(), "input": None, "output": None}


def main():
    answers = []
    for ask in json.load(sys.stdin):
        one = {"messages": with_anthropic, "raw": raw}.get(ask["api"], with_openai)
        answers.append(one(ask, {"test": ask["test"]}))
    print(json.dumps(answers))


main()
