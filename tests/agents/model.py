"""A model for the real agents: speaks what their providers speak, streaming, and does what the last prompt says.

    python3 model.py [--port N] [--certificates DIR] [--log FILE]

Prints the port it listens on (127.0.0.1). As a module: `Model` is the request handler, for servers of others.

  Anthropic messages          POST .../v1/messages
  OpenAI responses            POST .../responses
  OpenAI chat completions     POST .../chat/completions
  Gemini                      POST .../models/NAME:streamGenerateContent, :generateContent

A prompt that holds `[[sh COMMAND]]` is answered with a call of the agent's tool for shell commands, `[[tool NAME JSON]]` with one of
that tool (the first whose name ends in NAME), `[[slow]]` with words that go on until the client leaves; after the tool's result
comes `RESULT(what it said)`. Every other prompt: `Hello from the model.` What was asked is written to the log, a line of JSON each:
path, the key that came, and the last prompt.
"""
import argparse
import http.server
import itertools
import json
import os
import re
import socket
import ssl
import threading
import time

HELLO = 'Hello from the model.'
SHELLS = ('Bash', 'bash', 'exec_command', 'shell_command', 'shell', 'local_shell', 'run_shell_command')
log_lock = threading.Lock()


def text_of(content):
    """The text of a message's content, which every wire has as a string, or as a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    out = []
    for part in content or []:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, dict):
            if isinstance(part.get('text'), str):
                out.append(part['text'])
            elif 'content' in part:
                out.append(text_of(part['content']))
            elif 'output' in part:
                out.append(text_of(part['output']))
    return '\n'.join(out)


def arguments_for(name, schema, command):
    """What the agent's shell tool wants, from its own description."""
    properties = (schema or {}).get('properties', {})
    given = {}
    key = 'cmd' if 'cmd' in properties else 'command'
    given[key] = ['bash', '-c', command] if properties.get(key, {}).get('type') == 'array' else command
    if 'description' in properties:
        given['description'] = 'what the test asks'
    return given


class Wire:
    """One request: `tools` {name: schema}, `prompt` the last words of the user, `result` what a tool said after them, or None."""
    tools, prompt, result, stream = {}, '', None, True
    numbers = itertools.count(1)

    def name(self, kind):
        """A name of this answer's own: the agents take two that are named alike for one."""
        if not hasattr(self, 'number'):
            self.number = next(Wire.numbers)
        return '%s_%d' % (kind, self.number)

    def call(self):
        """(name, arguments) that the prompt asks for, or None."""
        if self.result is not None or not self.tools:
            return None
        if self.prompt.startswith('"') and self.prompt.rstrip().endswith('"'):  # opencode's command line quotes what has blanks
            self.prompt = self.prompt.strip()[1:-1].replace('\\"', '"')
        if found := re.search(r'\[\[sh (.+?)\]\]', self.prompt, re.S):
            for name in SHELLS:
                if name in self.tools:
                    return name, arguments_for(name, self.tools[name], found[1])
        if found := re.search(r'\[\[tool (\S+) (.+?)\]\]', self.prompt, re.S):
            for name in self.tools:
                if name.endswith(found[1]):
                    return name, json.loads(found[2])
            if 'ToolSearch' in self.tools:  # Claude Code describes a server's tools only when it is asked for them
                return 'ToolSearch', {'query': found[1], 'max_results': 5}
        return None

    def words(self):
        return HELLO if self.result is None else 'RESULT(%s)' % self.result.strip()

    def slow(self):
        return self.result is None and bool(self.tools) and '[[slow]]' in self.prompt


class Anthropic(Wire):
    def __init__(self, body):
        self.model, self.stream = body.get('model', 'm'), body.get('stream', False)
        self.tools = {t['name']: t.get('input_schema') for t in body.get('tools', []) if 'name' in t}
        for message in body.get('messages', []):
            content = message.get('content')
            if message.get('role') != 'user':
                continue
            results = [p for p in content if isinstance(p, dict) and p.get('type') == 'tool_result'] if isinstance(content, list) else []
            if results:
                said = results[-1].get('content')
                is_search = isinstance(said, list) and any(part.get('type') == 'tool_reference' for part in said)
                self.result = None if is_search else text_of(said)
            else:
                # Without what the agent itself says as the user, in between or before the user's words.
                text = re.sub(r'<system-reminder>.*?</system-reminder>', '', text_of(content), flags=re.S).strip()
                if text:
                    self.prompt, self.result = text, None

    def events(self, words, call):
        yield 'message_start', {'message': {'id': self.name('msg'), 'type': 'message', 'role': 'assistant', 'model': self.model,
                                            'content': [], 'stop_reason': None, 'stop_sequence': None,
                                            'usage': {'input_tokens': 10, 'output_tokens': 1}}}
        if call:
            block = {'type': 'tool_use', 'id': self.name('toolu'), 'name': call[0], 'input': {}}
            yield 'content_block_start', {'index': 0, 'content_block': block}
            for piece in halves(json.dumps(call[1])):
                yield 'content_block_delta', {'index': 0, 'delta': {'type': 'input_json_delta', 'partial_json': piece}}
        else:
            yield 'content_block_start', {'index': 0, 'content_block': {'type': 'text', 'text': ''}}
            for piece in words:
                yield 'content_block_delta', {'index': 0, 'delta': {'type': 'text_delta', 'text': piece}}
        yield 'content_block_stop', {'index': 0}
        yield 'message_delta', {'delta': {'stop_reason': 'tool_use' if call else 'end_turn', 'stop_sequence': None},
                                'usage': {'output_tokens': 5}}
        yield 'message_stop', {}

    def whole(self, words, call):
        block = {'type': 'text', 'text': words}
        if call:
            block = {'type': 'tool_use', 'id': self.name('toolu'), 'name': call[0], 'input': call[1]}
        return {'id': self.name('msg'), 'type': 'message', 'role': 'assistant', 'model': self.model, 'content': [block],
                'stop_reason': 'tool_use' if call else 'end_turn', 'stop_sequence': None, 'usage': {'input_tokens': 10, 'output_tokens': 5}}


class Responses(Wire):
    def __init__(self, body):
        self.stream = body.get('stream', False)
        self.scripted = None  # the namespace of a tool that takes JavaScript, in which all others are called
        self.find_tools(body.get('tools', []))
        given = body.get('input', [])
        for item in [{'type': 'message', 'role': 'user', 'content': given}] if isinstance(given, str) else given:
            if item.get('type') == 'additional_tools':
                self.find_tools(item.get('tools', []))
            elif item.get('type') in ('function_call_output', 'custom_tool_call_output'):
                self.result = text_of(item.get('output'))
            elif item.get('role') == 'user':
                self.prompt, self.result = text_of(item.get('content')), None

    def find_tools(self, tools, namespace=None):
        for tool in tools:
            if tool.get('type') == 'namespace':
                self.find_tools(tool.get('tools', []), tool['name'])
            elif tool.get('type') == 'custom' and tool.get('name') == 'exec':
                self.scripted = namespace or ''
                self.tools = dict(self.tools, exec_command={'properties': {'cmd': {'type': 'string'}}})
            else:
                self.tools = dict(self.tools, **{tool.get('name', tool.get('type')): tool.get('parameters')})

    def call(self):
        found = re.search(r'\[\[tool (\S+) (.+?)\]\]', self.prompt, re.S)
        if self.scripted is not None and self.result is None and found:
            return found[1], json.loads(found[2])
        return super().call()

    def item(self, call):
        if self.scripted is None:
            return {'type': 'function_call', 'id': self.name('fc'), 'call_id': self.name('call'), 'name': call[0],
                    'arguments': json.dumps(call[1])}
        script = ('const tool = ALL_TOOLS.find((each) => each.name.endsWith(%s));\n'
                  'text(await tools[tool.name](%s));' % (json.dumps(call[0]), json.dumps(call[1])))
        item = {'type': 'custom_tool_call', 'id': self.name('ctc'), 'call_id': self.name('call'), 'name': 'exec', 'input': script}
        return dict(item, namespace=self.scripted) if self.scripted else item

    def events(self, words, call):
        yield 'response.created', {'response': {'id': self.name('resp'), 'object': 'response', 'status': 'in_progress', 'output': []}}
        if call:
            item = self.item(call)
            kind, part = ('function_call_arguments', 'arguments') if self.scripted is None else ('custom_tool_call_input', 'input')
            yield 'response.output_item.added', {'output_index': 0, 'item': dict(item, **{part: ''})}
            for piece in halves(item[part]):
                yield 'response.%s.delta' % kind, {'item_id': item['id'], 'output_index': 0, 'delta': piece}
        else:
            added = {'type': 'message', 'id': self.name('msg'), 'role': 'assistant', 'status': 'in_progress', 'content': []}
            yield 'response.output_item.added', {'output_index': 0, 'item': added}
            whole = ''
            for piece in words:
                whole += piece
                yield 'response.output_text.delta', {'item_id': self.name('msg'), 'output_index': 0, 'content_index': 0, 'delta': piece}
            part = {'type': 'output_text', 'text': whole, 'annotations': []}
            item = dict(added, status='completed', content=[part])
        yield 'response.output_item.done', {'output_index': 0, 'item': item}
        yield 'response.completed', {'response': {
            'id': self.name('resp'), 'object': 'response', 'status': 'completed', 'output': [item],
            'usage': {'input_tokens': 10, 'input_tokens_details': {'cached_tokens': 0}, 'output_tokens': 5,
                      'output_tokens_details': {'reasoning_tokens': 0}, 'total_tokens': 15}}}

    def whole(self, words, call):
        for name, event in self.events([words], call):
            if name == 'response.completed':
                return event['response']


class Chat(Wire):
    def __init__(self, body):
        self.model, self.stream = body.get('model', 'm'), body.get('stream', False)
        self.tools = {t['function']['name']: t['function'].get('parameters') for t in body.get('tools', [])}
        for message in body.get('messages', []):
            if message.get('role') == 'tool':
                self.result = text_of(message.get('content'))
            elif message.get('role') == 'user':
                self.prompt, self.result = text_of(message.get('content')), None

    def chunk(self, delta, finish=None):
        return None, {'id': 'c1', 'object': 'chat.completion.chunk', 'created': 1, 'model': self.model,
                      'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]}

    def events(self, words, call):
        yield self.chunk({'role': 'assistant', 'content': ''})
        if call:
            first, second = halves(json.dumps(call[1]))
            yield self.chunk({'tool_calls': [{'index': 0, 'id': self.name('call'), 'type': 'function',
                                              'function': {'name': call[0], 'arguments': first}}]})
            yield self.chunk({'tool_calls': [{'index': 0, 'function': {'arguments': second}}]})
        else:
            for piece in words:
                yield self.chunk({'content': piece})
        name, last = self.chunk({}, 'tool_calls' if call else 'stop')
        yield name, dict(last, usage={'prompt_tokens': 10, 'completion_tokens': 5, 'total_tokens': 15})
        yield None, '[DONE]'

    def whole(self, words, call):
        message = {'role': 'assistant', 'content': words}
        if call:
            message = {'role': 'assistant', 'content': None, 'tool_calls': [
                {'id': self.name('call'), 'type': 'function', 'function': {'name': call[0], 'arguments': json.dumps(call[1])}}]}
        return {'id': 'c1', 'object': 'chat.completion', 'created': 1, 'model': self.model,
                'choices': [{'index': 0, 'message': message, 'finish_reason': 'tool_calls' if call else 'stop'}],
                'usage': {'prompt_tokens': 10, 'completion_tokens': 5, 'total_tokens': 15}}


class Gemini(Wire):
    def __init__(self, body, stream):
        self.stream = stream
        # A question of the program's own, whose answer must be of a shape: which model, is the talk over.
        self.schema = body.get('generationConfig', {}).get('responseJsonSchema') or body.get('generationConfig', {}).get('responseSchema')
        for group in body.get('tools', []):
            for each in group.get('functionDeclarations', []):
                self.tools = dict(self.tools, **{each['name']: each.get('parametersJsonSchema') or each.get('parameters')})
        for content in body.get('contents', []):
            parts = content.get('parts', [])
            results = [p['functionResponse'] for p in parts if 'functionResponse' in p]
            if results:
                response = results[-1].get('response', {})
                self.result = response.get('output') or response.get('error') or text_of(response.get('content')) or json.dumps(response)
            elif content.get('role') == 'user':
                self.prompt, self.result = text_of(parts), None

    def part(self, part, finish=None):
        candidate = {'index': 0, 'content': {'role': 'model', 'parts': [part]}}
        if finish:
            candidate['finishReason'] = finish
        return {'candidates': [candidate], 'modelVersion': 'm',
                'usageMetadata': {'promptTokenCount': 10, 'candidatesTokenCount': 5, 'totalTokenCount': 15}}

    def events(self, words, call):
        if call:
            yield None, self.part({'functionCall': {'name': call[0], 'args': call[1]}}, 'STOP')
            return
        last = ''
        for piece in words:
            if last:
                yield None, self.part({'text': last})
            last = piece
        yield None, self.part({'text': last}, 'STOP')

    def whole(self, words, call):
        return self.part({'functionCall': {'name': call[0], 'args': call[1]}} if call else {'text': words}, 'STOP')

    def words(self):
        if self.schema:
            return json.dumps({name: example(kind) for name, kind in self.schema.get('properties', {}).items()})
        return super().words()


def example(kind):
    if kind.get('enum'):
        return kind['enum'][0]
    return {'boolean': False, 'number': 1, 'integer': 1, 'array': [], 'object': {}}.get(str(kind.get('type', '')).lower(), 'user')


def halves(text):
    middle = len(text) // 2
    return text[:middle], text[middle:]


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    log = None  # a file's name

    def log_message(self, *args):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        if self.headers.get('Content-Encoding') == 'gzip':
            import gzip
            body = gzip.decompress(body)
        self.speak(body)

    def speak(self, body):
        """Answers a request whose head was read and whose body is `body`."""
        wire, path = None, self.path.split('?')[0]
        try:
            asked = json.loads(body) if body else {}
        except ValueError:
            asked = {}
        if self.command == 'POST':
            if path.endswith('/messages'):
                wire = Anthropic(asked)
            elif path.endswith('/responses'):
                wire = Responses(asked)
            elif path.endswith('/chat/completions'):
                wire = Chat(asked)
            elif path.endswith('enerateContent'):
                wire = Gemini(asked, 'stream' in path)
        self.note(path, wire)
        if self.headers.get('Upgrade'):  # 'use the other way': Codex tries a web socket first
            return self.send('application/json', b'{}', 426)
        if wire is None:
            return self.other(path)
        call = wire.call()
        if not wire.stream:
            return self.send('application/json', json.dumps(wire.whole(wire.words(), call)).encode())
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        try:
            for name, event in wire.events(self.endless() if wire.slow() else halves(wire.words()), call):
                if isinstance(wire, (Anthropic, Responses)):
                    event = dict(event, type=name)
                text = event if isinstance(event, str) else json.dumps(event)
                data = (('event: %s\n' % name if name else '') + 'data: ' + text + '\n\n').encode()
                self.wfile.write(b'%x\r\n%s\r\n' % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b'0\r\n\r\n')
        except OSError:  # the client left
            self.close_connection = True

    def endless(self):
        for number in range(10 ** 9):
            yield 'word%d ' % number
            time.sleep(0.02)  # nobody waits for it

    def other(self, path):
        if path.endswith(':countTokens') or path.endswith('/count_tokens'):
            return self.send('application/json', b'{"totalTokens":10,"input_tokens":10}')
        if path.endswith('/models'):
            return self.send('application/json', b'{"object":"list","data":[],"models":[]}')
        self.send('application/json', b'{}', 200 if self.command == 'HEAD' else 404)

    def send(self, kind, data, status=200):
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(data)

    def note(self, path, wire):
        if not Model.log:
            return
        key = self.headers.get('x-api-key') or self.headers.get('x-goog-api-key') or self.headers.get('Authorization')
        line = json.dumps({'method': self.command, 'host': self.headers.get('Host'), 'path': path, 'key': key,
                           'prompt': wire.prompt[-2000:] if wire else None, 'result': wire.result if wire else None,
                           'tools': list(wire.tools) if wire else None})
        with log_lock, open(Model.log, 'a') as out:
            out.write(line + '\n')

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):  # who leaves is no news
        pass


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('--port', type=int, default=0)
    options.add_argument('--certificates', help='a directory with cert.pem and key.pem: TLS')
    options.add_argument('--log', help='what was asked, a line of JSON each')
    given = options.parse_args()
    Model.log = given.log
    server = Server(('127.0.0.1', given.port), Model)
    if given.certificates:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(given.certificates, 'cert.pem'), os.path.join(given.certificates, 'key.pem'))
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == '__main__':
    main()
