// The official client against a server that speaks for Volcengine: that what Belljar's client is tested with takes what others sign,
// and refuses what they would not. Ends with 0 when everything was as it should be.
import assert from 'node:assert/strict'
import openapi from '@volcengine/openapi'

const url = new URL(process.env.VOLCENGINE_API_URL)
const service = (more) =>
  new openapi.Service({
    host: url.host,
    protocol: url.protocol,
    region: 'cn-beijing',
    serviceName: 'vefaas',
    defaultVersion: '2024-06-06',
    accessKeyId: process.env.VOLC_ACCESS_KEY_ID,
    secretKey: process.env.VOLC_SECRET_ACCESS_KEY,
    ...more,
  })
const vefaas = service({})
const call = async (client, action, body, query) => {
  const reply = await client.createJSONAPI(action)(body, query && { query })
  return reply.ResponseMetadata.Error ?? reply.Result
}
const FunctionId = process.env.SANDBOX_APP_ID

const made = await call(vefaas, 'CreateSandbox', { FunctionId, Timeout: 10, Metadata: { made: 'by a test ü' }, Envs: [{ Key: 'A', Value: 'b' }] })
const SandboxId = made.SandboxId
assert.ok(SandboxId)
const until = async (status) => {
  for (;;) {
    const found = await call(vefaas, 'DescribeSandbox', { FunctionId, SandboxId })
    if (found.Status === status) return found
    assert.equal(found.Status, 'Starting')
  }
}
assert.deepEqual((await until('Ready')).MetadataList, [{ MetaKey: 'made', MetaValue: 'by a test ü' }])
const listed = await call(vefaas, 'ListSandboxes', { FunctionId, Metadata: { made: 'by a test ü' } }, { 'an odd': 'query ~*/' })
assert.deepEqual(listed.Sandboxes.map((each) => each.Id), [SandboxId])

const triggers = await call(vefaas, 'ListTriggers', { FunctionId })
const { UpstreamId } = JSON.parse(triggers.Items.find((item) => item.Type === 'apig').DetailedConfig)
const apig = service({ serviceName: 'apig', defaultVersion: '2022-11-12' })
const routes = await call(apig, 'ListRoutes', { UpstreamId, PageNumber: 1, PageSize: 100 })
const { Domain } = routes.Items[0].Domains.find((domain) => domain.Type === 'public')
const inside = Domain + routes.Items[0].MatchRule.Path.MatchContent
const ask = async (path, body, headers = { Authorization: process.env.SANDBOX_AUTHORIZATION }) =>
  fetch(`${inside}${path}?faasInstanceName=${SandboxId}`, {
    method: body ? 'POST' : 'GET',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: body && JSON.stringify(body),
  })
const run = (command, more) => ask('/v1/bash/exec', { command, ...more }).then((reply) => reply.json())
const done = await run('echo out; echo err >&2; exit 3')
assert.deepEqual([done.success, done.data.stdout, done.data.stderr, done.data.exit_code, done.data.status], [true, 'out\n', 'err\n', 3, 'completed'])
assert.equal((await run('sleep 60', { hard_timeout: 0.2 })).data.status, 'timed_out')
assert.equal((await ask('/v1/bash/exec', {})).status, 422)
assert.equal((await ask('/v1/sandbox', null, {})).status, 401)

await call(vefaas, 'SetSandboxTimeout', { FunctionId, SandboxId, Timeout: 600, TimeoutUnit: 'second' })
assert.deepEqual(await call(vefaas, 'PauseSandbox', { FunctionId, SandboxId }), {})
assert.equal((await call(vefaas, 'DescribeSandbox', { FunctionId, SandboxId })).Status, 'Paused')
await call(vefaas, 'ResumeSandbox', { FunctionId, SandboxId, Timeout: 10 })
await until('Ready')
assert.deepEqual(await call(vefaas, 'KillSandbox', { FunctionId, SandboxId }), {})
assert.equal((await call(vefaas, 'KillSandbox', { FunctionId, SandboxId })).Code, 'ResourceNotFound')

const code = async (more, action = 'ListSandboxes') => (await call(service(more), action, { FunctionId })).Code
assert.equal(await code({ secretKey: 'wrong' }), 'SignatureDoesNotMatch')
assert.equal(await code({ accessKeyId: 'AKLTwrong' }), 'InvalidAccessKeyId')
assert.equal(await code({ region: 'cn-elsewhere' }), 'SignatureDoesNotMatch')
assert.equal(await code({}, 'NoSuchAction'), 'InvalidActionOrVersion')
const temporary = { accessKeyId: 'AKTPEXAMPLE0123456789', secretKey: 'dGVtcG9yYXJ5LXNlY3JldC1rZXk=' }
assert.equal(await code({ ...temporary, sessionToken: 'STSTOKENEXAMPLE0123456789' }), undefined)
assert.equal(await code({ ...temporary, sessionToken: 'STSEXPIREDEXAMPLE01234567' }), 'InvalidSecurityToken')
console.log('the client is content')
