package imports

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The reasons for which a file that reads bytes needs no fuzz target.
const (
	own      = "reads what this program wrote, where nobody else may write"
	server   = "reads answers that the nats-server makes itself"
	runners  = "reads what runners say, on subjects on which nobody else may speak, into plain structs"
	operator = "reads files of the operator, who could as well replace the program"
	tests    = "is for tests, and reads what they send"
)

// decoding says of each file that makes something of bytes by which fuzz target
// it is reached, by its name or, of another package, with the folder before it;
// or, with a space in it, why it needs none. A folder stands for all its files.
var decoding = map[string]string{
	"agent/agenttest": tests, "bus/bustest": tests, "agent/agenttest/conformance": tests, "agent/agenttest/injection": tests, "forgedir/schematest": tests,
	"internal/telemetry/otlptest": tests, "internal/testreport": tests, "services/gateway/forges/forgetest": tests,
	"services/gateway/forges/forgetest/apps": tests, "services/gateway/forges/forgetest/person": tests,
	"deploy/k8s/internal/testpod": tests, "deploy/images": "reads the base image that its build has compared with a digest",

	"agent/answer.go": "FuzzAnswers", "agent/audit.go": "FuzzAnswers", "agent/execution.go": "FuzzAnswers", "agent/intake.go": "FuzzAnswers",
	"agent/judgment.go": "FuzzAnswers", "agent/reflection.go": "FuzzAnswers", "agent/skill.go": "FuzzAnswers",
	"agent/summarization.go": "FuzzAnswers", "agent/schema.go": own,
	"agent/claude": "FuzzTranscript", "agent/cli/answer.go": "FuzzObject", "agent/cli/schema.go": own, "agent/cli/session.go": own,
	"agent/codex/output.go": "FuzzOutput", "agent/codex/rollout.go": "FuzzOutput", "agent/codex/schema.go": own,
	"agent/exec": "FuzzOutput", "agent/gemini": "FuzzOutput", "agent/opencode": "FuzzOutput",
	"agent/gateway/afford.go": "FuzzScreen", "agent/gateway/count.go": "FuzzMeter", "agent/gateway/decode.go": "FuzzScreen",
	"agent/pods/api.go": "reads answers of the Kubernetes API into plain structs", "agent/pods/pods.go": operator,
	"agent/process":       "reads the pipe between this program and its own supervisor, which a command does not inherit (TestNoDescriptorIsInherited)",
	"agent/remote/run.go": "FuzzFrame", "agent/remote/serve.go": "agent/remote FuzzFrame", "agent/remote/tree.go": "FuzzUnpack",

	"bus/backup":           "reads a backup, which its operator has kept, and answers of the nats-server",
	"bus/callout/admit.go": "FuzzAdmit", "bus/callout/certify.go": "FuzzCertify", "bus/callout/serve.go": server,
	"bus/changes":        runners,
	"bus/codec/codec.go": "FuzzUnmarshal", "bus/codec/field.go": "FuzzUnmarshal", "bus/codec/value.go": "FuzzUnmarshal",
	"bus/dead.go": "FuzzDead", "bus/internal/conn/asked.go": runners, "bus/internal/conn/probe.go": server, "bus/internal/conn/read.go": server,
	"bus/intakes": own, "service/begun": own,
	"bus/internal/jsonobject": "FuzzParse", "bus/internal/wire/summary.go": "FuzzSummary", "bus/internal/submitted": "bus/requests FuzzSubmission",
	"bus/internal/wire/listing.go": "FuzzListing",
	"bus/journal/aside.go":         "FuzzAside", "bus/journal/chain/chain.go": "FuzzRef", "bus/journal/chain/checkpoint.go": "FuzzCheckpoint",
	"bus/live": "FuzzCleaned", "bus/objects/name.go": "FuzzNamed", "bus/objects/objects.go": "FuzzDescribed", "bus/presence": "FuzzAnswer",
	"bus/requests/clean.go": "FuzzRequest", "bus/requests/endpoint.go": "FuzzRequest",
	"bus/requests/services.go": runners, "bus/requests/submission.go": "FuzzSubmission", "bus/requests/through.go": "FuzzIntentFor",
	"bus/requests/acts.go": "FuzzAct", "bus/signed": "FuzzProof",
	"bus/work/note.go":   "reads notes beside leases into a plain struct, of which names are compared, and shown if they are those of replicas",
	"bus/work/lease.go":  "reads leases of workers of the same step into a plain struct, whose texts are compared, and one is checked by isAck",
	"bus/work/report.go": "bus/internal/wire FuzzCommand",

	"cmd/pfl-forge/internal/cli/auth/authority": operator, "cmd/pfl-forge/internal/cli/auth/secrets": operator,
	"cmd/pfl-forge/internal/cli/connect":   operator,
	"cmd/pfl-forge/internal/cli/knowledge": "FuzzParse", "cmd/pfl-forge/internal/goalfile": "FuzzParse",
	"cmd/pfl-forge/internal/overhttp": "FuzzAnswers", "document/whole": "cmd/pfl-forge/internal/overhttp FuzzAnswers",
	"internal/plainjson": "FuzzUnmarshal", "bus/packed": runners,
	"cmd/pfl-forge/internal/local": own, "cmd/pfl-forge/internal/trust": own, "command_json.go": own,
	"config": "FuzzParse", "forgedir/drafts": "FuzzDraft", "forgedir/goals": "FuzzLine", "forgedir/projection/intent.go": "FuzzIntent",
	"forgedir/projection/index.go": own, "forgedir/records/notebook.go": own, "forgedir/records/overview.go": "internal/strictyaml FuzzDecode",
	"git/checkout": own, "git/worktree": own, "git/objects": "reads what git prints of objects that git has checked",
	"cmd/pfl-forge/internal/overhttp/login/claims.go": "FuzzNew", "cmd/pfl-forge/internal/overhttp/login/login.go": own,
	"internal/identity/keys.go": "reads the keys of an issuer that the operator has named, of a bounded size, each by the library of its signatures",
	"internal/identity/book.go": "FuzzTokens", "internal/identity/rules.go": "FuzzRules", "internal/patch": "FuzzUnpack",
	"internal/strictyaml": "FuzzDecode", "internal/transcript/line.go": "FuzzLines", "internal/transcript/page.go": "FuzzLines",
	"internal/transcript/whole.go": "FuzzWhole", "jobs/guard": "FuzzCommandFiles", "jobs/ledger": own, "jobs/sessions": "FuzzUnpack",
	"natsd": own, "notify": "FuzzParse", "proof/commit.go": "FuzzProofs", "proof/envelope.go": "FuzzStatements", "proof/key.go": own,
	"proof/signers.go": "FuzzSigners",

	"services/gateway/api": own, "services/gateway/chat/press.go": "FuzzPress", "services/gateway/chat/settings": operator,
	"services/gateway/chat/webhook":          operator,
	"services/gateway/chat/slack/client.go":  "reads answers of Slack into plain structs, of a bounded size, whose ids are checked",
	"services/gateway/chat/slack/payload.go": "FuzzRead", "services/gateway/chat/slack/socket.go": "FuzzRead",
	"services/gateway/chat/slack/slacktest": tests, "services/gateway/chat/poster.go": runners, "services/gateway/chat/watcher.go": runners,
	"services/gateway/console/login":   "reads cookies that bear this program's own code of authentication",
	"services/gateway/console/session": operator, "services/gateway/forges/gitea": "FuzzHint", "services/gateway/forges/github/app.go": operator,
	"services/gateway/forges/github/forge.go": "FuzzHint", "services/gateway/forges/gitlab": "FuzzHint", "services/gateway/forges/look/issue.go": own,
	"services/gateway/forges/look/text.go": "FuzzMark", "services/gateway/forges/look/watcher.go": runners,
	"services/gateway/forges/pulls": "FuzzMark", "services/gateway/forges/rest": "reads answers of a forge into plain structs, of a bounded size",
	"services/gateway/hooks/config.go": operator, "services/gateway/hooks/verify.go": "FuzzHooks", "services/gateway/hooks/events": "FuzzEvent",
	"services/gateway/intake/delivery.go": "FuzzDelivery", "services/gateway/intake/gitlab.go": "FuzzDelivery",
	"services/gateway/intake/rules.go": "FuzzRules",
	"services/gateway/settings.go":     operator, "services/gateway/watch.go": operator, "services/gateway/tokens": "FuzzParse",
	"services/implementer": "reads a file of its own into a plain struct, and counts one that is none as missing",
	"services/runner/flow": runners, "services/runner/flow/projects": runners,
	"services/runner/flow/outbox": runners, "services/runner/snapshots.go": runners, "services/runner/open.go": runners,
	"services/runner/sim/shelf": tests,
}

// others are fuzz targets of packages that read no bytes by the calls above,
// and texts all the same.
var others = map[string][]string{
	"agent/prompt": {"FuzzFence"}, "bus/codec": {"FuzzRoundTrip"}, "bus/internal/wire": {"FuzzCommand"}, "bus/requests": {"FuzzRead", "FuzzAnswer"},
	"bus/signed": {"FuzzTogether"}, "bus/subjects": {"FuzzParseSubjects", "FuzzTimerSubjects", "FuzzOutside"},
	"cmd/pfl-forge/internal/console": {"FuzzDecode"}, "git": {"FuzzNames"}, "internal/schedules": {"FuzzParse"},
	"internal/slug": {"FuzzNamed"}, "internal/strictyaml": {"FuzzRoundTrip"},
	"internal/term": {"FuzzSanitize"}, "jobs/evidence": {"FuzzResolve"}, "proof": {"FuzzCertificates"},
	"services/gateway/chat/slack": {"FuzzFit"}, "services/gateway/concealed": {"FuzzIn"}, "services/gateway/intake": {"FuzzCommands", "FuzzPlain"},
}

// decoder finds calls that make something of bytes, and functions whose names say that they do.
var decoder = regexp.MustCompile(`\b(?:json\.(?:Unmarshal|NewDecoder)|proto\.Unmarshal|protojson\.Unmarshal|protowire\.Consume\w+|` +
	`yaml\.(?:Unmarshal|NewDecoder)|strictyaml\.(?:Decode|Value)|jsonobject\.Parse|(?:tar|zip|gzip|zlib|bzip2|csv)\.(?:NewReader|OpenReader)|` +
	`(?:xml|gob)\.(?:Unmarshal|NewDecoder)|pem\.Decode|x509\.Parse\w+|ssh\.Parse\w+|jwt\.(?:Parse|Decode)\w*|base64\.\w+\.Decode\w*|` +
	`hex\.Decode\w*)\(|(?m:^func (?:\([^)]*\) )?(?:Parse|Decode|Unmarshal)\w*(?:\[[^]]*\])?\((?:\w+, )?\w+ \[\]byte)`)

// target finds fuzz targets.
var target = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

// TestDecodersAreFuzzed checks that each file that makes something of bytes says by
// which fuzz target it is reached, or why it needs none, and that the target is
// there: so none is forgotten, also in a package that has a target for another one.
func TestDecodersAreFuzzed(t *testing.T) {
	root := os.DirFS(repository(t))
	files, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	targets, decodes := map[string]bool{}, []string{}
	for _, f := range files {
		source, err := fs.ReadFile(root, f.path)
		if err != nil {
			t.Fatal(err)
		}
		if f.test {
			for _, m := range target.FindAllSubmatch(source, -1) {
				targets[path.Dir(f.path)+" "+string(m[1])] = true
			}
		} else if !f.generated && decoder.Match(source) {
			decodes = append(decodes, f.path)
		}
	}
	used, named := map[string]bool{}, map[string]bool{}
	for _, file := range decodes {
		at := file
		if decoding[at] == "" {
			at = path.Dir(file)
		}
		by := decoding[at]
		used[at] = true
		switch {
		case by == "":
			t.Errorf("%s makes something of bytes: it needs a fuzz target, or a reason; CONTRIBUTING.md says how", file)
			continue
		case strings.HasPrefix(by, "Fuzz"):
			by = path.Dir(file) + " " + by
		case !strings.Contains(by, " Fuzz"):
			continue // a reason
		}
		if named[by] = true; !targets[by] {
			t.Errorf("%s is reached by %s, which is no fuzz target", file, by)
		}
	}
	for at := range decoding {
		if !used[at] {
			t.Errorf("%s makes nothing of bytes", at)
		}
	}
	for dir, names := range others {
		for _, name := range names {
			if named[dir+" "+name] = true; !targets[dir+" "+name] {
				t.Errorf("%s has no fuzz target %s", dir, name)
			}
		}
	}
	for name := range targets {
		if !named[name] && name != "services/runner/flow FuzzTotal" && name != "bus/objects FuzzNamed" {
			t.Errorf("%s is in no row: what does it reach?", name)
		}
	}
	always, err := fs.ReadFile(root, ".ci/fuzz-always")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(always)) {
		if dir, name, _ := strings.Cut(strings.TrimSpace(line), ":"); !targets[dir+" "+name] {
			t.Errorf(".ci/fuzz-always: %s is no fuzz target", line)
		}
	}
	if len(targets) < 50 || len(decodes) < 100 || !slices.Contains(decodes, "jobs/sessions/archive.go") {
		t.Errorf("the search finds %d targets and %v only", len(targets), decodes)
	}
}

// TestDecoderPattern shows what counts as reading bytes.
func TestDecoderPattern(t *testing.T) {
	for text, want := range map[string]bool{
		"json.Unmarshal(data, &v)": true, "d := json.NewDecoder(r)": true, "tar.NewReader(zip)": true, "jwt.DecodeAuthorizationRequestClaims(s)": true,
		"o, err := jsonobject.Parse(data, x)": true, "base64.RawURLEncoding.DecodeString(s)": true, "func ParseThing(data []byte) error {": true,
		"func (c *C[T]) Unmarshal(data []byte) (T, error) {": true, "json.Marshal(v)": false, "strictyaml.Closest(s, known)": false,
		"func Parse(s string) error {": false, "ParseThing(data)": false,
	} {
		if got := decoder.MatchString(text); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
