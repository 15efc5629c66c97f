// Calls of the operator's API, see http.go.

let token = '';

export class SignedOut extends Error {}

async function answer(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    body = { error: `The service answered with status ${response.status}.` };
  }
  if (response.status === 401) throw new SignedOut(body.error);
  if (!response.ok) throw new Error(body.error || `status ${response.status}`);
  if (body.token) token = body.token;
  return body;
}

export async function get(path, query = {}, signal = undefined) {
  const set = Object.entries(query).filter(([, value]) => value !== '' && value !== 0 && value !== undefined && value !== null);
  return answer(await fetch(`/admin/api/${path}?${new URLSearchParams(set)}`, { signal }));
}

export async function post(path, body = {}) {
  return answer(await fetch(`/admin/api/${path}`, {
    method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Zephbot-Token': token }, body: JSON.stringify(body),
  }));
}
