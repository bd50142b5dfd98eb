// Builds dist/page.html: scripts and styles in one file, with a policy that names them by their hashes and allows nothing else.
// `node build.mjs --check` compares with what is there instead of writing it.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const options = { bundle: true, minify: true, write: false, charset: "utf8", legalComments: "none", target: "es2022" };
const bundle = async (entry, more) => (await build({ ...options, ...more, entryPoints: [entry] })).outputFiles[0].text.trim();
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = (await bundle("src/main.ts", { format: "iife" })).replaceAll("</script", "<\\/script");
const style = await bundle("src/page.css", { loader: { ".css": "css" } });
const policy = [
  "default-src 'none'", `script-src ${hash(script)}`, `style-src ${hash(style)}`, "img-src data: blob:",
  "base-uri 'none'", "form-action 'none'",
].join("; ");

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>nrg: where did the joules go?</title>
<style>${style}</style>
</head>
<body>
<main id="page"><h1>nrg</h1><p>This page shows an energy recording. It needs JavaScript, which runs from this file alone, and no network.</p></main>
<!--nrg-data--><script>${script}</script>
</body>
</html>
`;

if (process.argv.includes("--check")) {
  const same = readFileSync("dist/page.html", "utf8") === page;
  console.log(same ? "dist/page.html is what the sources give" : "dist/page.html is not what the sources give: npm run build");
  process.exit(same ? 0 : 1);
}
writeFileSync("dist/page.html", page);
console.log(`dist/page.html: ${Buffer.byteLength(page)} bytes, script ${Buffer.byteLength(script)}, style ${Buffer.byteLength(style)}`);
