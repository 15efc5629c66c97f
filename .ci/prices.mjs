// Writes the table of prices and windows. Called by .ci/prices, which says from what.
// arguments: directory of the package @pydantic/genai-prices, its date, the answer of `go mod download -json` for catwalk,
// directory in which that is unpacked, directory of package price.
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [genaiDir, genaiDate, catwalkFile, unpacked, out] = process.argv.slice(2)

// The package shows one provider at a time, and its table to nobody: it is the first constant of the bundle.
async function genaiProviders() {
  const source = fs.readFileSync(path.join(genaiDir, 'dist/index.js'), 'utf8')
  const found = /^const (\w+) = \[\n\s+\{\n\s+id: "/m.exec(source)
  if (!found) throw new Error('genai-prices: its bundle has no list of providers where it had one')
  const opened = path.join(genaiDir, 'dist/opened.mjs')
  fs.writeFileSync(opened, source + `\nexport { ${found[1]} as providers };\n`)
  return import(pathToFileURL(opened))
}

// Go has no lookahead: a negative one at the beginning becomes a rule of its own.
function rule(match) {
  const [kind, value] = Object.entries(match)[0]
  if (kind === 'or' || kind === 'and') return { [kind]: value.map(rule) }
  if (kind !== 'regex') return { [kind]: value.toLowerCase() }
  const negative = /^\^\(\?!((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)(.*)$/.exec(value)
  if (!negative) return { regex: value }
  const not = { not: { regex: '^' + negative[1] } }
  return negative[2] ? { and: [not, { regex: '^' + negative[2] }] } : not
}

// What is kept of a price. Searches, pages and pixels are none of ours.
const kept = {
  input_mtok: 'in', output_mtok: 'out', cache_read_mtok: 'read', cache_write_mtok: 'write', audio_hours: 'audio_hour', requests_kcount: 'thousand',
}

function rates(prices, more) {
  const rate = { ...more }
  for (const [from, to] of Object.entries(kept)) {
    const price = prices[from]
    if (price === undefined) continue
    rate[to] = typeof price === 'number' ? price : [price.base, ...price.tiers.map((t) => [t.start, t.price])]
  }
  return Object.keys(rate).length > Object.keys(more).length ? [rate] : []
}

function pricesOf(prices) {
  if (!Array.isArray(prices)) return rates(prices, {})
  return prices.flatMap(({ constraint, prices }) => {
    if (!constraint) return rates(prices, {})
    if (constraint.type === 'time_of_date') return rates(prices, { begins: constraint.start_time, ends: constraint.end_time })
    return rates(prices, { from: constraint.start_date })
  })
}

// The providers of catwalk whose windows are taken, by the names that genai-prices has for them. Those of OpenRouter are
// not: it lists them itself, for everybody who asks.
const windows = {
  openai: 'openai', anthropic: 'anthropic', gemini: 'google', azure: 'azure', 'bedrock-united-states': 'aws', cerebras: 'cerebras',
  copilot: 'github-copilot', deepseek: 'deepseek', fireworks: 'fireworks', groq: 'groq', minimax: 'minimax', moonshot: 'moonshotai',
  xai: 'x-ai', zai: 'zai', zhipu: 'zhipuai', 'alibaba-singapore': 'dashscope',
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

const { providers, calcPrice } = await genaiProviders()
const catwalk = JSON.parse(fs.readFileSync(catwalkFile, 'utf8'))
const catwalkDir = path.join(unpacked, `${catwalk.Path}@${catwalk.Version}`)
const configs = path.join(catwalkDir, 'internal/providers/configs')
const table = new Map()
for (const p of providers) {
  table.set(p.id, {
    provider: p.id, api: p.api_pattern, ...(p.model_match && { names: rule(p.model_match) }),
    ...(p.fallback_model_providers && { also: p.fallback_model_providers }),
    models: p.models.map((m) => ({
      model: m.id, match: rule(m.match), prices: pricesOf(m.prices), ...(m.context_window && { window: m.context_window }),
    })),
  })
}
for (const [from, to] of Object.entries(windows)) {
  const config = JSON.parse(fs.readFileSync(path.join(configs, from + '.json'), 'utf8'))
  if (!table.has(to)) {
    const host = new URL(config.api_endpoint).host
    const both = host.replace('-intl', '') === host ? escaped(host) : escaped(host).replace('-intl', '(-[a-z]+)?')
    table.set(to, { provider: to, api: 'https://' + both, models: [] })
  }
  const known = table.get(to).models
  for (const m of config.models) {
    const same = known.find((k) => k.model.toLowerCase() === m.id.toLowerCase())
    if (same) {
      same.window = m.context_window || same.window
      continue
    }
    // Plans of a month say that a token costs nothing, so 0 says nothing.
    const cost = {}
    if (m.cost_per_1m_in > 0 && m.cost_per_1m_out > 0) {
      Object.assign(cost, { in: m.cost_per_1m_in, out: m.cost_per_1m_out })
      if (m.cost_per_1m_out_cached > 0) cost.read = m.cost_per_1m_out_cached
      if (m.cost_per_1m_in_cached > 0) cost.write = m.cost_per_1m_in_cached
    }
    known.push({ model: m.id, match: { equals: m.id.toLowerCase() }, prices: cost.in ? [cost] : [], ...(m.context_window && { window: m.context_window }) })
  }
}

const lines = [
  {
    source: 'genai-prices', version: JSON.parse(fs.readFileSync(path.join(genaiDir, 'package.json'), 'utf8')).version, date: genaiDate, license: 'MIT',
    address: 'https://github.com/pydantic/genai-prices', gives: 'prices, and windows that catwalk does not know',
  },
  {
    source: 'catwalk', version: catwalk.Version, date: JSON.parse(fs.readFileSync(catwalk.Info, 'utf8')).Time.slice(0, 10), license: 'MIT',
    address: 'https://github.com/charmbracelet/catwalk', gives: 'windows, and prices that genai-prices does not know',
  },
]
for (const { models, ...head } of table.values()) {
  lines.push(head)
  for (const { prices, ...m } of models) {
    if (prices.length > 0 || m.window) lines.push({ ...m, ...(prices.length > 0 && { prices }) })
  }
}
fs.writeFileSync(path.join(out, 'table.jsonl'), lines.map((l) => JSON.stringify(l) + '\n').join(''))
fs.writeFileSync(path.join(out, 'table.LICENSE'), ['genai-prices', genaiDir, 'catwalk', catwalkDir].reduce((text, part, i) => (
  text + (i % 2 === 0 ? `${i ? '\n' : ''}table.jsonl contains data of ${part}:\n\n` : fs.readFileSync(path.join(part, 'LICENSE'), 'utf8'))
), ''))

// How the owner matches, for the test that compares: names of models as people write them, and what the owner finds.
const owner = []
const at = new Date('2026-11-01T12:00:00Z')
for (const [i, p] of providers.entries()) {
  p.models.forEach((m, j) => {
    if ((i + j) % 8 !== 0) return
    for (const name of [m.id, m.id.toUpperCase(), m.id + '-20260102', m.id + '-x']) {
      const found = calcPrice({ input_tokens: 300000, cache_read_tokens: 1000, output_tokens: 5000 }, name, { providerId: p.id, timestamp: at })
      owner.push([p.id, name, found ? found.model.id : '', found ? Number(found.total_price.toPrecision(10)) : 0])
    }
  })
}
fs.mkdirSync(path.join(out, 'testdata'), { recursive: true })
fs.writeFileSync(path.join(out, 'testdata/owner.jsonl'), owner.map((o) => JSON.stringify(o) + '\n').join(''))
