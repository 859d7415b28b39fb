package cli

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// preparePrompt checks the prompt and prefixes one that a CLI could take for a command,
// an option or a file. It appends the schema for a CLI without an option for it.
func (p *Program) preparePrompt(call *agent.Call) error {
	text := call.Prompt
	switch {
	case strings.TrimSpace(text) == "":
		return agent.Fail(forge.FailConfig, "the prompt is empty")
	case len(text) > maxPrompt:
		return agent.Fail(forge.FailPromptTooLong, "the prompt is %d bytes long; at most %d are allowed", len(text), maxPrompt)
	case strings.ContainsRune("/-@!", rune(strings.TrimSpace(text)[0])):
		text = "Request:\n" + text
	}
	if len(call.Schema) > 0 && !p.TakesSchema {
		text += "\n\nWhen you are done, your last message must be one JSON object and nothing else: no text before or after it, no code fence. " +
			"It must match this JSON schema:\n" + string(call.Schema) + "\n"
	}
	call.Prompt = text
	return nil
}

// EnterScript returns a shell script for BASH_ENV that changes from work to the
// checkout. It is for a CLI that obeys files in its directory, and therefore runs in
// another one, while its commands have to start in the checkout.
func EnterScript(work, checkout string) string {
	return fmt.Sprintf("if [ . -ef %s ]; then cd -- %s; fi\n", quote(work), quote(checkout))
}

// quote returns s as one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
