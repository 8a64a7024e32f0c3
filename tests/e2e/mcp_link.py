# A workspace that is named through a symbolic link: mcp_link.py BELLJAR flag|roots|pwd LINK WORKSPACE. Prints "ok" at the end.
import os
import sys

from mcp_peer import Peer

belljar, how, link, workspace = sys.argv[1:5]
words = [belljar, 'mcp', '--permission', 'yolo']
if how == 'flag':
    peer = Peer(words + ['--workspace', link])
elif how == 'roots':
    peer = Peer(words, capabilities={'roots': {}}, roots=[link])
else:
    peer = Peer(words, cwd=link, env={**os.environ, 'PWD': link})

PATCH = '--- /dev/null\n+++ {}/patched\n@@ -0,0 +1 @@\n+{}\n'


def done(name, /, **arguments):
    result = peer.call(name, **arguments)
    assert not result['isError'], (name, arguments, result)
    return result['content'][0]['text']


def refused(part, name, /, **arguments):
    result = peer.call(name, **arguments)
    assert result['isError'] and part in result['content'][0]['text'], (name, arguments, result)


with peer:
    for top in (link, workspace):
        done('write_file', path=top + '/sub/f', content='hello ' + top)
        assert top in done('read_file', path=top + '/sub/f')
        assert 'f' in done('list', path=top + '/sub')
        assert 'sub/f' in done('glob', pattern=top + '/sub/*'), top
        assert 'sub/f' in done('grep', text='hello', files=top + '/sub/*'), top
        assert workspace + '/sub' in done('bash', command='pwd', cwd=top + '/sub')
        done('apply_patch', patch=PATCH.format(top, top))
        assert top in done('read_file', path='patched')
        done('delete', path=top + '/patched')
    refused('path escapes workspace', 'read_file', path=link + '2/sub/f')
    refused('path escapes workspace', 'read_file', path=os.path.dirname(link) + '/f')
    refused('path escapes workspace', 'apply_patch', patch=PATCH.format(link + '2', 'x'))
print('ok')
