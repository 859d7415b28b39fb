package cli

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// preparePrompt checks the prompt, and makes of it what no CLI takes for a command or an
// option. A CLI that takes no schema is told in words.
func (p *Program) preparePrompt(call *agent.Call) error {
	most := p.MaxPrompt
	if most == 0 {
		most = defaultMaxPrompt
	}
	text := call.Prompt
	switch {
	case strings.TrimSpace(text) == "":
		return agent.Fail(forge.FailConfig, "the prompt is empty")
	case len(text) > most:
		return agent.Fail(forge.FailPromptTooLong, "the prompt is %d bytes long; at most %d are allowed", len(text), most)
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

// EnterScript returns a script for BASH_ENV: for a program that obeys what is in its
// directory, and so runs in another one, it has commands start in the checkout.
func EnterScript(work, checkout string) string {
	return fmt.Sprintf("if [ . -ef %s ]; then cd -- %s; fi\n", quote(work), quote(checkout))
}

// quote returns s as one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
