"""An MCP server on stdin and stdout with one tool: add(a, b)."""
import json
import sys

SCHEMA = {'type': 'object', 'properties': {'a': {'type': 'number'}, 'b': {'type': 'number'}}, 'required': ['a', 'b']}
for line in sys.stdin:
    asked = json.loads(line)
    if 'id' not in asked:
        continue
    method, result, given = asked['method'], {}, asked.get('params', {})
    if method == 'initialize':
        result = {'protocolVersion': given['protocolVersion'], 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'calc', 'version': '1'}}
    elif method == 'tools/list':
        result = {'tools': [{'name': 'add', 'description': 'adds two numbers', 'inputSchema': SCHEMA, 'annotations': {'readOnlyHint': True}}]}
    elif method == 'tools/call':
        total = given['arguments']['a'] + given['arguments']['b']
        result = {'content': [{'type': 'text', 'text': 'the sum is %d' % total}]}
    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': result}), flush=True)
