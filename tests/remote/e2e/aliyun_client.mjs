// Drives tests/support/fake_aliyun.py by the request core of Aliyun's own clients (npm @alicloud/openapi-core): what they send it
// takes, what it answers they read. Ends with "the client is content".
import assert from 'node:assert/strict'
import fs from 'node:fs'
import core from '@alicloud/openapi-core'

const { $OpenApiUtil, OpenApiUtil, default: OpenApi } = core
const { AGENTBAY_API_KEY: key, AGENTBAY_ENDPOINT: endpoint, FAKE_LOG: log } = process.env
const url = new URL(endpoint)
const client = new OpenApi(new $OpenApiUtil.Config({ endpoint: url.host, protocol: url.protocol.replace(':', ''), regionId: '', signatureAlgorithm: 'v2' }))

async function call(action, body, query = {}, authorization = `Bearer ${key}`) {
  const answer = await client.callApi(
    new $OpenApiUtil.Params({ action, version: '2025-05-06', protocol: 'HTTPS', pathname: '/', method: 'POST', authType: 'Anonymous',
      style: 'RPC', reqBodyType: 'formData', bodyType: 'json' }),
    new $OpenApiUtil.OpenApiRequest({ body: OpenApiUtil.parseToMap({ Authorization: authorization, ...body }), query }),
    {})
  return answer.body
}
const last = () => JSON.parse(fs.readFileSync(log, 'utf8').trim().split('\n').at(-1))

const made = await call('CreateMcpSession', { ImageId: 'linux_latest', Labels: JSON.stringify({ made: 'by a test' }), Timeout: 300 })
assert.equal(made.Success, true)
const { SessionId: id, Token: token, LinkUrl: link } = made.Data
assert.equal(JSON.parse(made.Data.ToolList).find((tool) => tool.name === 'shell').server, 'wuying_shell')

// The same text as in AliyunForm.IsSortedAndPercentEncodedAndLeavesOutWhatIsEmpty: one encoding, theirs and ours.
await call('GetSession', { SessionId: id, b: 'my key~/+&=\n"{}', 'ü': 'ä' })
const [path, headers, form] = last()
assert.equal(form, `Authorization=Bearer%20${key}&SessionId=${id}&b=my%20key~%2F%2B%26%3D%0A%22%7B%7D&%C3%BC=%C3%A4`)
assert.match(path, /[?&]Action=GetSession(&|$)/)
assert.match(path, /[?&]Timestamp=\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\dZ(&|$)/)
assert.equal(headers['x-acs-version'], '2025-05-06')

const said = await call('CallMcpTool', { SessionId: id, Name: 'shell', Server: 'wuying_shell', AutoGenSession: false,
  Args: JSON.stringify({ command: 'echo out; exit 3', timeout_ms: 50000 }) })
const shell = JSON.parse(said.Data.content[0].text)
assert.deepEqual([shell.stdout, shell.exit_code], ['out\n', 3])

const direct = await fetch(`${link}/callTool`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Access-Token': token },
  body: JSON.stringify({ args: { path: 'a file', content: 'ü' }, server: 'wuying_filesystem', requestId: 'link-1-000000001', tool: 'write_file', token }) })
assert.equal((await direct.json()).data.result.isError, false)
const read = await call('CallMcpTool', { SessionId: id, Name: 'read_file', Args: JSON.stringify({ path: '/home/wuying/a file' }) })
assert.equal(read.Data.content[0].text, 'ü')

assert.equal((await call('GetSessionDetail', {}, { SessionId: id })).Data.Status, 'RUNNING')
assert.deepEqual((await call('ListSession', { Labels: JSON.stringify({ made: 'by a test' }) })).Data.map((row) => row.SessionId), [id])
assert.equal((await call('DeleteSessionAsync', { SessionId: id })).Success, true)
await assert.rejects(call('GetSessionDetail', {}, { SessionId: id }), (error) => error.code === 'InvalidMcpSession.NotFound')
await assert.rejects(call('GetSession', { SessionId: id }, {}, 'Bearer wrong'), (error) => error.code === 'NOT_LOGIN')
await assert.rejects(call('NoSuchAction', {}), (error) => error.code === 'InvalidAction.NotFound')
console.log('the client is content')
