// CPython and NumPy (Pyodide), off the page's own thread. The first message loads them; each message runs its blocks.
const plainFetch = fetch, plainStreaming = WebAssembly.instantiateStreaming;
const tell = (...message) => postMessage(message);

const fail = error => {
  tell("broken", error.message);
  throw error;
};

// Every byte is a sign of life, and no failure stays silent: at some of them Pyodide would wait for ever.
self.fetch = async (...request) => {
  const name = new URL(request[0]).pathname.split("/").pop();
  const response = await plainFetch(...request).catch(error => fail(new Error(`${name}: ${error.message}`)));
  if (!response.ok) fail(new Error(`${name}: ${response.status}`));
  const counted = new TransformStream({
    transform(chunk, controller) {
      tell("received", chunk.length);
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(counted), response);
};
WebAssembly.instantiateStreaming = (...given) => plainStreaming(...given).catch(fail);

async function boot(root) {
  const python = root + "python/";
  const lock = await (await fetch(python + "pyodide-lock.json")).json();
  const others = Promise.all([
    fetch(root + "mha.zip").then(response => response.arrayBuffer()),
    fetch(python + "session.py").then(response => response.text()),
    // Pyodide asks for the wheel last: from the browser's cache, if it is here by then.
    fetch(python + lock.packages.numpy.file_name).then(response => response.arrayBuffer()),
  ]);
  const { loadPyodide } = await import(python + "pyodide.mjs");
  const pyodide = await loadPyodide({ indexURL: python });
  const [mha, session] = await others;
  let why = "";
  const said = { messageCallback() {}, errorCallback: text => (why += text) };
  if (!(await pyodide.loadPackage("numpy", said)).some(({ name }) => name === "numpy")) throw new Error(why);
  pyodide.unpackArchive(mha, "zip");
  pyodide.FS.writeFile("session.py", session);
  const { run } = pyodide.pyimport("session");
  return blocks => run(pyodide.toPy(blocks), (...shown) => tell("shown", ...shown));
}

let booting;
onmessage = async ({ data: { root, blocks } }) => {
  try {
    const run = await (booting ??= boot(root));
    tell("started");
    run(blocks);
    tell("ended");
  } catch (error) {
    fail(error);
  }
};
