package cmdline

import (
	"strings"
	"testing"
)

// TestShown: what is harmless is shown whole, and of the rest no secret,
// however it is written. Each secret is S3.
func TestShown(t *testing.T) {
	for line, want := range map[string]string{
		"":                                    "",
		"go test ./...":                       "go test ./...",
		"make verify":                         "make verify",
		"  make \t verify\n":                  "make …",
		"go test -race -count=1 -run=X ./a/b": "go test -race -count=1 -run=X ./a/b",
		"go run example.com/a/b@v1.2.3 --fix": "go run example.com/a/b@v1.2.3 --fix",
		"npm run build:all -- --max=5":        "npm run build:all -- --max=5",
		"go vet ./... && go test ./...":       "go vet ./... …",
		"DB_PASSWORD=S3 go test":              "DB_PASSWORD=…",
		`TOKEN="a\"b S3" x`:                   "TOKEN=…",
		`TOKEN=abc"S3"`:                       "TOKEN=…",
		"TOKEN=$(echo S3)":                    "TOKEN=…",
		"TOKEN=`echo S3`":                     "TOKEN=…",
		`TOKEN=a\ S3`:                         "TOKEN=…",
		"TOKEN+=S3":                           "TOKEN+=…",
		`X="s S3`:                             "X=…",
		"env A.B=S3 x":                        "env A.B=…",
		"echo S'3' S3":                        "echo …",
		"echo $(cat S3)":                      "echo …",
		"echo `S3`":                           "echo …",
		"x --token $(echo S3)":                "x --token …",
		`x --token="a"S3`:                     "x --token=…",
		"x --token=S3 y":                      "x --token=…",
		`x "--token" "S3"`:                    "x …",
		"x --token \\\nS3":                    "x --token …",
		"x --token\nS3":                       "x …",
		"x\nTOKEN S3":                         "…",
		"x --token\tS3":                       "x …",
		"x --TOKEN:S3":                        "x --TOKEN:…",
		"x --api-key  S3":                     "x --api-key …",
		"x --pass S3":                         "x --pass …",
		"x --pwd S3":                          "x --pwd …",
		"x --set=password=S3":                 "x --set=…",
		"x --set a=S3":                        "x --set a=…",
		"x --with=Bearer:S3":                  "x --with=…",
		"x -p S3":                             "x -p …",
		"x -pS3":                              "x -p…",
		"x -p=S3":                             "x -p=…",
		"x -Dpassword=S3":                     "x -Dpassword=…",
		"curl -u u:S3":                        "curl -u …",
		"curl -sSu u:S3":                      "curl -sSu …",
		`curl -H "Authorization: Bearer S3"`:  "curl -H …",
		"curl -HAuthorization:S3":             "curl -H…",
		"http Authorization:S3":               "http Authorization:…",
		"curl https://u:p@S3@host":            "curl …",
		"curl https://u:p/S3@host":            "curl …",
		"curl https://S3@host":                "curl …",
		"curl https://h/?access_token=S3":     "curl …",
		"curl https://hooks.example.com/S3":   "curl …",
		"curl https://h/a=S3":                 "curl …",
		"curl --url=https://u:S3@h":           "curl --url=…",
		"curl u:S3@h":                         "curl …",
		"npm config set //r/:_authToken S3":   "npm config set …",
		"vault write password S3":             "vault write password …",
		"./set-token.sh S3":                   "./set-token.sh …",
		"make verify --keep-going":            "make verify --keep-going",
		"redis-cli -a S3":                     "redis-cli -a …",
		"x\u00a0S3":                           "…",
		"x --token":                           "x --token",
	} {
		got := Shown(line)
		if got != want || strings.Contains(got, "S3") {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
