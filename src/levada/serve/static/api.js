// One way to ask the API; a refusal becomes an Error with its sentence.

// Of several collections each has its own API, beside its own pages.
export const API = new URL("../api/v1", import.meta.url).pathname;

export async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(`${API}${path}`, { headers: { accept: "application/json", ...options.headers }, ...options });
  } catch {
    throw new Error("The server does not answer. Is 'levada serve' still running?");
  }
  if (answer.status === 401) { location.reload(); }
  const told = await answer.json().catch(() => null);
  if (!answer.ok) {
    const error = new Error(told?.error?.message || `The server answered ${answer.status}.`);
    error.code = told?.error?.code || String(answer.status);
    throw error;
  }
  return told;
}

export const order = (method, path, body) =>
  ask(path, { method, headers: { "content-type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body) });

export const query = (values) => {
  const filled = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return filled.length ? `?${new URLSearchParams(filled)}` : "";
};
