"""PyPI's openai as a client: openai_client.py URL AT_A_TIME < asks > answers, both JSON.

An ask: {api: chat, completions or responses; stream, text, tokens, model; cancel_after: pieces}. An answer: {text, input, output: tokens by
the server's usage, joules: the header field x-nrg-joules or null}.
"""
import concurrent.futures
import json
import sys

import openai


def pieces(api, event):
    """Text of an event, and usage if it has some."""
    if api == "responses":
        done = event.type == "response.completed"
        return event.delta if event.type == "response.output_text.delta" else "", event.response.usage if done else None
    choice = event.choices[0]
    return (choice.delta.content if api == "chat" else choice.text) or "", event.usage


def whole(api, answer):
    if api == "responses":
        return answer.output_text, answer.usage
    choice = answer.choices[0]
    return choice.message.content if api == "chat" else choice.text, answer.usage


def one(client, ask):
    api, words = ask["api"], {"model": ask["model"], "temperature": 0, "stream": ask["stream"]}
    if api == "chat":
        create, words["messages"] = client.chat.completions, [{"role": "user", "content": ask["text"]}]
    else:
        create, words["input" if api == "responses" else "prompt"] = getattr(client, api), ask["text"]
    words["max_output_tokens" if api == "responses" else "max_tokens"] = ask["tokens"]
    raw = create.with_raw_response.create(**words)
    answer = raw.parse()
    text, usage = "", None
    if not ask["stream"]:
        text, usage = whole(api, answer)
    else:
        seen = 0
        for event in answer:
            piece, said = pieces(api, event)
            text, usage = text + piece, said or usage
            seen += bool(piece)
            if seen == ask.get("cancel_after"):
                answer.close()
                break
    counts = [getattr(usage, name, None) for name in
              (("input_tokens", "output_tokens") if api == "responses" else ("prompt_tokens", "completion_tokens"))]
    return {"text": text, "input": counts[0], "output": counts[1], "joules": raw.headers.get("x-nrg-joules")}


def main():
    client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="sk-nobody-may-keep-it", max_retries=0, timeout=120)
    with concurrent.futures.ThreadPoolExecutor(int(sys.argv[2])) as pool:
        print(json.dumps(list(pool.map(lambda ask: one(client, ask), json.load(sys.stdin)))))


main()
