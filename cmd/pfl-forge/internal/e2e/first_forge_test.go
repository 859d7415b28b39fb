package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
)

// blocks returns the commands of the guide of the first pull request, with
// those that the guide of another forge has in place of them.
func (w *newcomer) blocks() (list []string) {
	w.t.Helper()
	page := w.page("first-pull-request", "# First pull request", "")
	if w.kind == "gitea" {
		return page
	}
	request := map[string]string{"github": "pull", "gitlab": "merge"}[w.kind]
	own := w.page(w.kind, "## The first "+request+" request", "## A webhook")
	last := len(own) - 1
	if last < 1 || !strings.Contains(own[last], "gateway init") {
		w.t.Fatalf("the guide has these commands: %q", own)
	}
	for _, block := range page {
		switch {
		case strings.Contains(block, "export URL="):
			list = append(list, own[:last]...)
		case strings.Contains(block, "read -rsp"):
		case strings.Contains(block, "gateway init"):
			list = append(list, own[last])
		default:
			list = append(list, block)
		}
	}
	return list
}

// page returns the commands of a guide between two lines. There are no blocks of anything else.
func (w *newcomer) page(guide, from, to string) (list []string) {
	w.t.Helper()
	text, err := os.ReadFile("../../../../docs/guide-" + guide + ".md")
	if err != nil {
		w.t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(text), from+"\n")
	if to != "" {
		part, _, _ = strings.Cut(part, to)
	}
	if !ok {
		w.t.Fatalf("the guide has no %q", from)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(part, -1) {
		if m[1] != "sh" {
			w.t.Fatalf("a block of the page is %s, which is not tried", m[1])
		}
		list = append(list, m[2])
	}
	return list
}

// secrets puts into a folder what the guide of another forge has a person get
// in the browser: the key of an App, which is installed, or a token.
func (w *newcomer) secrets(dir string) {
	w.t.Helper()
	if w.kind == "gitea" {
		return
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		w.t.Fatal(err)
	}
	w.fake.Hub.Install("Iv23liExample", &key.PublicKey, w.repo)
	testdir.Secret(w.t, dir, map[string]string{
		"github.pem":   string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"gitlab.token": w.tokens["bot"],
	})
}

// unlisten has the gateway of the settings in a folder listen wherever there is
// room, and ask the forge as often as Gitea.
func (w *newcomer) unlisten(dir string) {
	for name, change := range map[string][2]string{
		"gateway.yaml": {"127.0.0.1:8080", "127.0.0.1:0"}, "forges.yaml": {"sweep_every: 1m", "sweep_every: 10s"},
	} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		write(w.t, path, strings.Replace(string(text), change[0], change[1], 1))
	}
}
