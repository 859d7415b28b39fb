package redact_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge/internal/redact"
)

// Shapes are put together here, so that nobody takes this file for a leak.
var shaped = map[string]string{
	"anthropic":  "sk-" + "ant-api03-Zm9vYmFyYmF6cXV4",
	"openai":     "sk-" + "proj-a1b2c3d4e5f6g7h8i9j0",
	"github":     "ghp" + "_a1b2c3d4e5f6g7h8i9j0klmnopqrstuvwxyz",
	"pat":        "github" + "_pat_11ABCDEFG0abcdefghij_klm",
	"gitlab":     "glpat" + "-a1b2c3d4e5f6g7h8i9j0",
	"npm":        "npm" + "_a1b2c3d4e5f6g7h8i9j0klmnopqrstuvwxyz",
	"aws":        "AKIA" + "I2SFODNN7EXAMPLE",
	"google":     "AIza" + "SyA-1bcdefghijklmnopqrstuvwxyz0123456",
	"slack":      "xox" + "b-123456789012-abcdefghijkl",
	"slack app":  "xapp" + "-1-A0123ABCD-1234567890123-0123456789abcdef",
	"jwt":        "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
	"nats":       "SU" + "AIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTC4",
	"pem":        "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc/def+ghi=\n-----END RSA PRIVATE KEY-----",
	"half a pem": "-----BEGIN " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n",
}

func TestShapes(t *testing.T) {
	var none redact.Redactor
	for name, secret := range shaped {
		if got := none.Text("is: " + secret); got != "is: "+redact.Mark {
			t.Errorf("%s: %q", name, got)
		}
	}
	for text, want := range map[string]string{
		"git clone https://me:hunter2@example.com/a.git": "git clone https://" + redact.Mark + "@example.com/a.git",
		"Authorization: Bearer abcdefghijklmnop0123":     "Authorization: Bearer " + redact.Mark,
	} {
		if got := none.Text(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, text := range []string{
		"", "nothing here", "the task-management-dashboard-component of risk-assessment", "commit 4103c08860aa",
		"see https://example.com/a@b and user@example.com", "SUMMARY: 12 tests", "the bearer of good news", "basic responsibilities",
		"docs/sk-learn-tutorial-notes.md", "ASIAPACIFICREGION", "SUPERCALIFRAGILISTICEXPIALIDOCIOUS",
	} {
		if got := none.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestCommandLines looks at the lines of commands, which those who may only
// look are told: what is given as a secret is none of theirs.
func TestCommandLines(t *testing.T) {
	var none redact.Redactor
	for line, want := range map[string]string{
		"DB_PASSWORD=hunter make test":                         "DB_PASSWORD=" + redact.Mark + " make test",
		"env PGPASSWORD='a b c d' psql":                        "env PGPASSWORD=" + redact.Mark + " psql",
		`API_KEY="a b c d" TOKEN=abcd go test`:                 "API_KEY=" + redact.Mark + " TOKEN=" + redact.Mark + " go test",
		"curl -u ci:hunter https://example.com":                "curl -u ci:" + redact.Mark + " https://example.com",
		"curl --user ci:hunter https://example.com":            "curl --user ci:" + redact.Mark + " https://example.com",
		"tool --password=hunter --db-token 12345 --all":        "tool --password=" + redact.Mark + " --db-token " + redact.Mark + " --all",
		"git clone https://ci:hunter@example.com/a.git":        "git clone https://" + redact.Mark + "@example.com/a.git",
		`verify: "DB_PASSWORD=hunter make" exited with 1`:      "verify: \"DB_PASSWORD=" + redact.Mark + " make\" exited with 1",
		`{"command":"DB_PASSWORD=hunter make","exit":1}`:       `{"command":"DB_PASSWORD=` + redact.Mark + ` make","exit":1}`,
		`{"command":"API_KEY=\"a b c d\" make"}`:               `{"command":"API_KEY=` + redact.Mark + ` make"}`,
		`{"command":"curl -u \"ci:hunter\" x"}`:                `{"command":"curl -u \"ci:` + redact.Mark + `\" x"}`,
		`{"command":"API_KEY=\"$KEY\" tool --token t1\nmake"}`: "",
		"DB_PASSWORD=$PASSWORD make":                           "",
		"DB_PASSWORD=\"$PASSWORD\" make":                       "",
		"API_TOKEN=$(cat token) make":                          "",
		"API_TOKEN=/run/secrets/token make":                    "",
		"tool --token \"$TOKEN\" --password-file /run/pass":    "",
		"MAX_TOKENS=4096 KEYS=12345 make":                      "",
		"docker run -u 1000:1000 --user 1000:1000 sort -u":     "",
		"if [ $TOKEN == abcd ]; then go test -run Token":       "",
		"the options --token and --password are required":      "",
	} {
		if want == "" {
			want = line
		}
		got := none.Text(line)
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
		if again := none.Text(got); again != got {
			t.Errorf("%q became %q", got, again)
		}
	}
}

func TestValues(t *testing.T) {
	const secret = "correct-Horse-7-Battery"
	r := redact.New(secret, "short", "", "12345678")
	for text, want := range map[string]string{
		"a " + secret + " b":                        "a " + redact.Mark + " b",
		secret + secret:                             redact.Mark,
		"cut off: " + secret[:15]:                   "cut off: " + redact.Mark,
		secret[5:] + " cut off":                     redact.Mark + " cut off",
		"wrapped " + secret[:9] + "\n" + secret[9:]: "wrapped " + redact.Mark,
		"short stays, correct too":                  "short stays, correct too",
		"12345678 goes":                             redact.Mark + " goes",
	} {
		got := r.Text(text)
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if again := r.Text(got); again != got {
			t.Errorf("%q became %q", got, again)
		}
	}
}

// TestKnow checks that what is learnt later is taken out by streams that have begun, and that
// what was known before stays so.
func TestKnow(t *testing.T) {
	const old, young = "correct-Horse-7-Battery", "another-Staple-8-Fence"
	var r redact.Redactor
	s := r.Stream()
	if got := s.Text(old); got != old {
		t.Errorf("got %q", got)
	}
	for _, secret := range []string{old, young, old, "short"} {
		r.Know(secret)
	}
	for _, text := range []string{r.Text(old + " " + young), s.Text(young), s.Text(old)} {
		if strings.Contains(text, old) || strings.Contains(text, young) || !strings.Contains(text, redact.Mark) {
			t.Errorf("got %q", text)
		}
	}
}

// TestLines checks that a line is looked at by itself, too: what ended the one
// before does not hide it.
func TestLines(t *testing.T) {
	s := new(redact.Redactor).Stream()
	if got := s.Text("the word"); got != "the word" {
		t.Error(got)
	}
	if got := s.Text(shaped["openai"]); got != redact.Mark {
		t.Error(got)
	}
	if got := s.Text(" and more"); got != " and more" {
		t.Error(got)
	}
}

// TestStream checks that a secret does not get through whatever splits it, and
// that what is around it does.
func TestStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var secret string
		if rapid.Bool().Draw(t, "known") {
			secret = rapid.StringMatching(`[A-Za-z0-9!#%&]{8,80}`).Draw(t, "value")
		} else {
			secret = rapid.SampledFrom([]string{
				shaped["anthropic"], shaped["openai"], shaped["github"], shaped["pat"], shaped["aws"], shaped["google"], shaped["slack"], shaped["jwt"], shaped["pem"],
			}).Draw(t, "shape")
		}
		r := redact.New(secret)
		prose := rapid.StringMatching(`[ .,:=?]{0,40}`)
		before, after := prose.Draw(t, "before"), prose.Draw(t, "after")
		text := before + "\n" + secret + "\n" + after
		if got := r.Text(text); strings.Contains(got, secret) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
			t.Fatalf("whole: %q became %q", text, got)
		}
		s := r.Stream()
		var out strings.Builder
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			out.WriteString(s.Text(rest[:n]))
			rest = rest[n:]
		}
		got := out.String()
		if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
			t.Fatalf("%q became %q", text, got)
		}
		leaked := strings.TrimSuffix(strings.TrimPrefix(got, before+"\n"), "\n"+after)
		leaked = strings.ReplaceAll(leaked, redact.Mark, "\x00")
		for part := range strings.SplitSeq(leaked, "\x00") {
			part = strings.TrimPrefix(part, "-----BEGIN RSA PRIVATE KEY-----"[:min(len(part), 31)])
			if len(part) > 13 { // beginnings that tell nothing are part of it
				t.Fatalf("%q of %q got through", part, secret)
			}
		}
	})
}

func TestEnviron(t *testing.T) {
	got := redact.Environ([]string{
		"PATH=/usr/bin", "HOME=/root", "ANTHROPIC_API_KEY=key-1", "CLAUDE_CODE_OAUTH_TOKEN=token-1", "FORGE_TOKEN_FILE=/run/token",
		"SSH_AUTH_SOCK=/tmp/agent", "FORGE_SERVER=nats://me:password-1@host:4222,nats://token-2@host", "DB_PASSWORD=x", "AWS_SECRET_ACCESS_KEY=s",
		"ANTHROPIC_BASE_URL=https://example.com", "GOFLAGS=-mod=mod", "EMPTY_TOKEN=",
	})
	want := []string{"key-1", "token-1", "password-1", "token-2", "x", "s", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkStream(b *testing.B) {
	s := redact.New("correct-Horse-7-Battery", "another-secret-value-0123456789").Stream()
	line := strings.Repeat("ok  github.com/x/y  0.123s Some line of a test's output. ", 3)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		s.Text(line)
	}
}
