// Loaded by opencode, from the settings that pfl-forge gives it.
import { Database } from "bun:sqlite"
import { writeSync } from "node:fs"

export default async () => {
  if (globalThis.forge) return {} // it loads us more than once
  globalThis.forge = true
  let untold = 0 // answers of the model

  // What a pipe does not take at once would be lost when it exits.
  process.stdout.write = (text) => {
    if (text.startsWith('{"type":"step_finish"')) untold--
    for (let rest = Buffer.from(text); rest.length > 0; ) {
      try {
        rest = rest.subarray(writeSync(1, rest))
      } catch (err) {
        if (err.code !== "EAGAIN") throw err
        Bun.sleepSync(5)
      }
    }
    return true
  }

  // It asks a model again without end when that refuses, and says nothing of it. Nothing
  // but the model is asked: it would download programs, for example.
  const model = process.env.ANTHROPIC_BASE_URL
  const fetch = globalThis.fetch
  const refused = (status, message, after) =>
    process.stdout.write(JSON.stringify({ type: "refused", status, message, after }) + "\n")
  globalThis.fetch = Object.assign(async (...request) => {
    const url = String(request[0]?.url ?? request[0])
    if (!url.startsWith(model)) throw new Error(`pfl-forge lets opencode ask nobody but its model: ${url}`)
    // What an answer cost is told before the next one is asked for, if it is told at all.
    for (let i = 0; untold > 0 && i < 100; i++) await Bun.sleep(5)
    untold = 0
    const answer = await fetch(...request).catch((err) => {
      refused(0, String(err))
      throw err
    })
    if (answer.ok) untold++
    else refused(answer.status, await answer.clone().text(), answer.headers.get("retry-after"))
    return answer
  }, fetch)

  // A session goes on in the directory in which it began, which may be on another machine.
  const db = new Database(process.env.OPENCODE_DB)
  db.run("update session set directory = ?", [process.cwd()])
  db.close()
  return {}
}
