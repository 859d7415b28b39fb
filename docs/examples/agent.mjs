#!/usr/bin/env node
// A small agent for pfl-forge: it asks a model of the Messages API, runs what that wants
// to run, and goes on with a conversation. docs/guide-agents.md explains the contract.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const env = process.env;
const file = `${env.FORGE_STATE_DIR}/${env.FORGE_SESSION}.json`; // of the conversation
const usage = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, turns: 0 };

const print = (line) => writeFileSync(1, JSON.stringify(line) + "\n");

function fail(reason, message, until) {
  print({ type: "result", usage, error: { reason, message, until } });
  process.exit(1);
}

// Whatever the repository says about how to work on it.
function conventions() {
  if (env.FORGE_UNINSTRUCTED) return ""; // it is part of what is judged
  const name = ["AGENTS.md", "CLAUDE.md"].find((f) => existsSync(f));
  return name ? `\n\nThe repository's ${name}:\n${readFileSync(name, "utf8")}` : "";
}

// A call gets the tools that it is to have, and one that only reads none that could write.
const may = (env.FORGE_TOOLS ?? "").split(",");
const tools = [];
if (may.includes("Read")) {
  tools.push({
    name: "read_file",
    description: "Read a file of the repository.",
    input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  });
}
if (may.includes("Bash") && !env.FORGE_READ_ONLY) {
  tools.push({
    name: "bash",
    description: "Run a shell command in the repository.",
    input_schema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  });
}

function use({ name, input }) {
  if (!tools.some((t) => t.name === name)) return { error: `there is no tool ${name}` };
  if (name === "read_file") {
    try {
      return { output: readFileSync(input.path, "utf8") };
    } catch (e) {
      return { error: e.message };
    }
  }
  const { ANTHROPIC_API_KEY, ...rest } = env; // the model's commands do not need the key
  const run = spawnSync("bash", ["-c", input.command], { encoding: "utf8", env: rest, stdio: ["ignore", "pipe", "pipe"] });
  const output = run.stdout + run.stderr;
  return run.status === 0 ? { output } : { error: `exit status ${run.status}: ${output}` };
}

async function ask(messages) {
  let reply;
  try {
    reply = await fetch(`${env.ANTHROPIC_BASE_URL ?? "https://api.anthropic.com"}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": env.ANTHROPIC_API_KEY ?? "" },
      body: JSON.stringify({
        model: env.FORGE_MODEL || "claude-sonnet-4-5",
        max_tokens: 16000,
        system: readFileSync(env.FORGE_SYSTEM, "utf8") + conventions(),
        messages,
        tools: tools.length > 0 ? tools : undefined,
        output_config: env.FORGE_EFFORT ? { effort: env.FORGE_EFFORT } : undefined,
      }),
    });
  } catch (e) {
    fail("overloaded", `the model cannot be reached: ${e.message}`);
  }
  const body = await reply.json().catch(() => ({}));
  if (reply.ok) return body;
  const message = `${reply.status}: ${body.error?.message}`;
  const after = Number(reply.headers.get("retry-after"));
  const until = after > 0 ? new Date(Date.now() + after * 1000).toISOString() : undefined;
  if (body.error?.type === "insufficient_quota") fail("quota", message, until);
  if (reply.status === 401 || reply.status === 403) fail("auth", message);
  if (reply.status === 404) fail("config", message);
  if (reply.status === 429) fail("rate_limited", message, until);
  if (reply.status >= 500) fail("overloaded", message);
  fail("crashed", message);
}

function count(u) {
  usage.input_tokens += u.input_tokens;
  usage.output_tokens += u.output_tokens;
  usage.cache_read_tokens += u.cache_read_input_tokens ?? 0;
  usage.cache_write_tokens += u.cache_creation_input_tokens ?? 0;
  usage.turns++;
  print({ type: "usage", usage });
}

if (env.FORGE_RESUME && !existsSync(file)) fail("lost_session", `${file} is not there`);
const messages = env.FORGE_RESUME ? JSON.parse(readFileSync(file, "utf8")) : [];
messages.push({ role: "user", content: readFileSync(0, "utf8") });
print({ type: "started", model: env.FORGE_MODEL });

for (;;) {
  const reply = await ask(messages);
  count(reply.usage);
  messages.push({ role: "assistant", content: reply.content });
  const results = [];
  let text = "";
  for (const block of reply.content) {
    if (block.type === "text") {
      text += block.text;
      print({ type: "text", text: block.text });
    }
    if (block.type === "tool_use") {
      print({ type: "tool", tool: block.name, text: block.input.command ?? block.input.path });
      const { output, error } = use(block);
      if (error) print({ type: "tool_failed", tool: block.name, text: error });
      else if (block.name === "bash") print({ type: "command_ended", tool: block.name, text: output });
      results.push({ type: "tool_result", tool_use_id: block.id, content: error ?? output, is_error: error !== undefined });
    }
  }
  if (results.length > 0) messages.push({ role: "user", content: results });
  writeFileSync(file, JSON.stringify(messages)); // a call that is cut off can be gone on with
  if (results.length === 0) {
    print({ type: "result", text, model: reply.model, usage });
    break;
  }
}
