// Calls of the simulator's HTTP API, see api.go.

async function answer(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    body = { error: `The simulator answered with status ${response.status}.` };
  }
  if (!response.ok) throw new Error(body.error || `status ${response.status}`);
  return body;
}

export async function get(path, query = {}, signal = undefined) {
  return answer(await fetch(`/api/${path}?${new URLSearchParams(query)}`, { signal }));
}

export async function post(path, body = {}) {
  return answer(await fetch(`/api/${path}`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
  }));
}

export const fileURL = (me, id) => `/api/file?${new URLSearchParams({ me, id })}`;

// base64 of a file, as JSON wants it.
export function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(',', 2)[1] || '');
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
