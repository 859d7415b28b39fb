//go:build containers

package containers

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// servers is how many NATS servers there are. Streams are on all of them.
const servers = 3

// system is the name of the other system that asks for changes.
const system = "loadgen"

// installation is pfl-forge as containers on a network of their own: NATS servers as
// deploy/k8s configures them, the services, a git server.
type installation struct {
	*docker

	network string
	// config has the files that containers see, a folder for each account and the server.
	config   string
	nats     [servers]testcontainers.Container
	git      testcontainers.Container
	services map[string]testcontainers.Container
	// token is that by which a system asks the gateway.
	token string
}

// install starts everything, with a version of nats-server.
func install(t *testing.T, d *docker, version string) *installation {
	t.Helper()
	in := &installation{docker: d, config: t.TempDir(), services: map[string]testcontainers.Container{}}
	n, err := network.New(wait.Context(t))
	testcontainers.CleanupNetwork(t, n)
	if err != nil {
		t.Fatal(err)
	}
	in.network = n.Name
	in.configure(t)
	for i := range servers {
		t.Cleanup(func() { in.removeVolume(t, in.volume(i)) })
	}
	for i := range servers {
		in.startNATS(t, i, version)
	}
	in.startGit(t)
	began := time.Now()
	for _, name := range []string{"runner", "analyzer", "implementer", "reviewer", "reflector", "gateway"} {
		in.startService(t, name, name)
	}
	in.startService(t, "runner", "runner-2")
	in.startService(t, "implementer", "implementer-2")
	for name := range in.services {
		in.ready(t, name)
		t.Logf("%s is ready after %s", name, since(began))
	}
	return in
}

// configure writes accounts and certificates with our own image, and beside them the
// configuration of NATS that deploy/k8s has.
func (in *installation) configure(t *testing.T) {
	t.Helper()
	out := in.folder(t, "auth", nil)
	args := []string{"auth", "init", "--out", "/out", "--system", system, "--projects", "shop", "--gateway", "--host", "nats"}
	for i := range servers {
		args = append(args, "--host", host(i))
	}
	request := testcontainers.ContainerRequest{Image: in.image("pfl-forge"), Cmd: args}
	if code, said := in.run(t, request, out+":/out"); code != 0 {
		t.Fatalf("auth init: exit code %d: %s", code, said)
	}
	manifests := filepath.Join("..", "k8s", "nats")
	in.folder(t, "nats", map[string]string{
		"nats.conf": read(t, manifests, "nats.conf"), "cluster.conf": read(t, manifests, "cluster.conf"), "storage.conf": read(t, manifests, "storage.conf"),
		"auth.conf": read(t, out, "auth.conf"), "tls/tls.crt": read(t, out, "tls.crt"), "tls/tls.key": read(t, out, "tls.key"),
		"tls/ca.crt": read(t, out, "ca.crt"),
	})
	for _, account := range []string{"runner", "analyzer", "implementer", "reviewer", "reflector", "gateway", "operator", system} {
		files := map[string]string{"nkey": read(t, out, account+".nk"), "ca.crt": read(t, out, "ca.crt")}
		if account == "runner" { // it asks for signatures
			files["allowed_signers"] = read(t, out, "allowed_signers")
		}
		if account == "gateway" {
			maps.Copy(files, in.doors(t))
		}
		in.folder(t, account, files)
	}
	in.folder(t, "git", map[string]string{
		"start.sh":       read(t, "..", "k8s", "testdata", "git", "start.sh"),
		"pfl-forge.yaml": withoutPods(t, read(t, "..", "k8s", "testdata", "git", "pfl-forge.yaml")),
	})
	in.folder(t, "tools", nil)
}

// withoutPods returns a project's configuration without the two lines, of verify and of a recipe's
// check, that only hold in a pod of Kubernetes.
func withoutPods(t *testing.T, config string) string {
	t.Helper()
	var kept []string
	for line := range strings.Lines(config) {
		if !strings.Contains(line, "grep -q ^forge-implementer-") {
			kept = append(kept, line)
		}
	}
	if all := strings.Count(config, "\n"); len(kept) != all-2 {
		t.Fatalf("%d lines of %d are left of:\n%s", len(kept), all, config)
	}
	return strings.Join(kept, "")
}

// folder makes a folder of files for containers, whose user is not that of the test, and
// returns its path.
func (in *installation) folder(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(in.config, name)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[file]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if files == nil {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// host returns the name under which servers find a server: that of its pod in deploy/k8s.
func host(server int) string { return fmt.Sprintf("nats-%d.nats-headless", server) }

// volume returns the name of the volume that outlives a server's container.
func (in *installation) volume(server int) string {
	return fmt.Sprintf("%s-nats-%d", in.network, server)
}

func (in *installation) removeVolume(t *testing.T, name string) {
	t.Helper()
	if _, err := in.client.VolumeRemove(wait.Context(t), name, client.VolumeRemoveOptions{Force: true}); err != nil {
		t.Error(err)
	}
}

// startNATS starts a server on its volume.
func (in *installation) startNATS(t *testing.T, server int, version string) {
	t.Helper()
	in.nats[server] = in.start(t, testcontainers.ContainerRequest{
		Image: in.docker.nats(version), Cmd: []string{"--config", "/etc/nats/nats.conf"},
		Env:          map[string]string{"POD_NAME": "nats-" + strconv.Itoa(server)},
		ExposedPorts: []string{"8222/tcp"},
		Networks:     []string{in.network}, NetworkAliases: map[string][]string{in.network: {host(server), "nats"}},
		Tmpfs:  map[string]string{"/var/run/nats": "uid=65532,gid=65532,mode=700"},
		Mounts: testcontainers.Mounts(testcontainers.VolumeMount(in.volume(server), "/data")),
	}, in.config+"/nats:/etc/nats:ro")
}

// startGit starts a git server with the repository of the project.
func (in *installation) startGit(t *testing.T) {
	t.Helper()
	if code, out := in.run(t, testcontainers.ContainerRequest{Image: testpod, Cmd: []string{"install", "/tools"}}, in.config+"/tools:/tools"); code != 0 {
		t.Fatal(out)
	}
	in.git = in.start(t, testcontainers.ContainerRequest{
		Image: in.image("implementer"), Entrypoint: []string{"sh", "/etc/git-server/start.sh"}, Env: map[string]string{"HOME": "/tmp"},
		Networks: []string{in.network}, NetworkAliases: map[string][]string{in.network: {"git"}},
		Tmpfs: map[string]string{"/repos": "uid=65532,gid=65532,mode=700"},
	}, in.config+"/git:/etc/git-server:ro", in.config+"/tools:/tools:ro")
}

// startService starts a service under a name.
func (in *installation) startService(t *testing.T, service, name string) {
	t.Helper()
	env := map[string]string{
		"FORGE_SERVER": "tls://nats:4222", "FORGE_NKEY": "/etc/forge/nats/nkey", "FORGE_TLS_CA": "/etc/forge/nats/ca.crt",
		"FORGE_LISTEN": ":8080", "FORGE_PROJECTS": "shop=http://git:8080/shop.git", "FORGE_STREAM_REPLICAS": strconv.Itoa(servers),
		"FORGE_REPLICA": name,
		// The runtime gives no user namespaces, so there is no sandbox here.
		"FORGE_SANDBOX": "unconfined",
	}
	if service == "gateway" {
		env["FORGE_GATEWAY"] = "/etc/forge/nats/gateway.yaml"
	}
	in.services[name] = in.start(t, testcontainers.ContainerRequest{
		Image: in.image(service), ExposedPorts: []string{"8080/tcp"},
		Env:      env,
		Networks: []string{in.network}, NetworkAliases: map[string][]string{in.network: {name}},
	}, in.config+"/"+service+":/etc/forge/nats:ro")
}

// ready waits until a service says that it can work.
func (in *installation) ready(t *testing.T, name string) {
	t.Helper()
	wait.Until(t, name+" is ready", func() bool {
		_, err := in.get(t, in.services[name], "8080/tcp", "/readyz")
		return err == nil
	})
}

// get asks a container by HTTP.
func (in *installation) get(t *testing.T, c testcontainers.Container, port, path string) ([]byte, error) {
	t.Helper()
	ctx := wait.Context(t)
	endpoint, err := c.PortEndpoint(ctx, port, "http")
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, data)
	}
	return data, err
}

// submit has another system ask for changes, and returns their names once all are stored.
func (in *installation) submit(t *testing.T, prefix string, count int) []string {
	t.Helper()
	code, out := in.run(t, testcontainers.ContainerRequest{
		Image: testpod, Cmd: []string{"submit", "shop", prefix, "0", strconv.Itoa(count)},
		Env:      map[string]string{"FORGE_SERVER": "tls://nats:4222", "SYSTEM": system},
		Networks: []string{in.network},
	}, in.config+"/"+system+":/etc/forge/nats:ro")
	if want := fmt.Sprintf("stored %d\n", count); code != 0 || out != want {
		t.Fatalf("the system said %q with exit code %d, want %q", out, code, want)
	}
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%03d", prefix, i))
	}
	return names
}

// doors returns the files of the gateway's settings, with a token that its own program has made.
func (in *installation) doors(t *testing.T) map[string]string {
	t.Helper()
	code, out := in.run(t, testcontainers.ContainerRequest{Image: in.image("gateway"), Cmd: []string{"token"}})
	// What is said about it for people may come before or behind it.
	made := regexp.MustCompile(`(?m)^(pflt_\S+)$[^:]*sha256: ([0-9a-f]{64})$`).FindStringSubmatch(out)
	if code != 0 || made == nil {
		t.Fatalf("a token: exit code %d: %s", code, out)
	}
	in.token = made[1]
	return map[string]string{
		"gateway.yaml": "listen: :8081\ntokens: tokens.yaml\n",
		"tokens.yaml":  fmt.Sprintf("tokens:\n  web: {sha256: %s, system: web, projects: {shop: [requester]}}\n", made[2]),
	}
}

// request has another system ask for changes by HTTP, each of them twice, and
// returns their names once a runner has taken all.
func (in *installation) request(t *testing.T, prefix string, count int) []string {
	t.Helper()
	code, out := in.run(t, testcontainers.ContainerRequest{
		Image: testpod, Cmd: []string{"request", "http://gateway:8081", "shop", prefix, strconv.Itoa(count)},
		Env:      map[string]string{"TOKEN": in.token},
		Networks: []string{in.network},
	})
	if want := fmt.Sprintf("taken %d\n", count); code != 0 || out != want {
		t.Fatalf("the system said %q with exit code %d, want %q", out, code, want)
	}
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("%s-%03d", prefix, i))
	}
	return names
}

// log returns the titles of the commits on the base branch.
func (in *installation) log(t *testing.T) []string {
	t.Helper()
	code, out, err := in.exec(wait.Context(t), in.git, "git", "-C", "/repos/shop.git", "log", "--format=%s", "main")
	if err != nil || code != 0 {
		t.Fatalf("git log: exit code %d, %v: %s", code, err, out)
	}
	return strings.Split(strings.TrimSpace(out), "\n")
}

// merged waits until every change is on the base branch, and checks that none is there
// twice, nothing else is, and no intent ended in another way.
func (in *installation) merged(t *testing.T, names []string) {
	t.Helper()
	began := time.Now()
	all := func() bool { return len(in.log(t)) > len(names) }
	wait.Moving(t, fmt.Sprintf("%d changes are merged", len(names)), all, func() int { return len(in.log(t)) })
	got := in.log(t)
	want := []string{"first"}
	for _, name := range names {
		want = append(want, "Write "+name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("the base branch has %q, want %q", got, want)
	}
	wait.Until(t, "all intents are done", func() bool {
		done := 0
		for title, status := range in.statuses(t) {
			switch status {
			case "done":
				done++
			case "error", "failed", "rejected", "cancelled":
				t.Fatalf("%s: %s", title, status)
			}
		}
		return done == len(names)
	})
	t.Logf("%d changes merged after %s", len(names), since(began))
}

// statuses asks pfl-forge, as a person does, for the status of each intent.
func (in *installation) statuses(t *testing.T) map[string]string {
	t.Helper()
	code, out := in.run(t, testcontainers.ContainerRequest{
		Image: in.image("pfl-forge"), Cmd: []string{"status", "--project", "shop", "-o", "json"},
		Env:      map[string]string{"FORGE_SERVER": "tls://nats:4222", "FORGE_NKEY": "/etc/forge/nats/nkey", "FORGE_TLS_CA": "/etc/forge/nats/ca.crt"},
		Networks: []string{in.network},
	}, in.config+"/operator:/etc/forge/nats:ro")
	var list struct {
		Intents []struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"intents"`
	}
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil {
		t.Fatalf("status: exit code %d, %v: %s", code, err, out)
	}
	all := map[string]string{}
	for _, i := range list.Intents {
		all[i.ID] = i.Status
	}
	return all
}
