// Bundles the page's third-party code into three files and collects the licences. The same versions give the same bytes.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const target = process.argv[2] ?? "../src/pailot/page/vendor";
mkdirSync(target, { recursive: true });
const used = new Set();
for (const name of ["preact", "editor", "plot"]) {
  const made = await build({
    entryPoints: [`${name}.js`], outfile: join(target, `${name}.js`), bundle: true, format: "esm", minify: true,
    target: "es2022", legalComments: "none", charset: "utf8", metafile: true,
  });
  for (const input of Object.keys(made.metafile.inputs)) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found) used.add(found[1]);
  }
}
copyFileSync("node_modules/uplot/dist/uPlot.min.css", join(target, "plot.css"));
const licences = [...used].sort().map((name) => {
  const folder = join("node_modules", name);
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), "utf8").trim() : ""}\n`;
});
writeFileSync(join(target, "LICENCES.txt"), licences.join(`\n${"-".repeat(80)}\n\n`));
