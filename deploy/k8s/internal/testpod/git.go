package main

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/cgi" //nolint:gosec // git speaks no other protocol, and Go has been mended
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// serveGit serves the repositories in a folder to everybody, to read and to
// push. One beside which there is a file REPOSITORY.passwords it serves to
// those alone who give one of the words in it. /healthz says that it serves.
func serveGit(dir string) error {
	backend := &cgi.Handler{
		Path: "/usr/bin/git", Args: []string{"http-backend"}, Stderr: os.Stderr, //nolint:forbidigo // of a main
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=/tmp"},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		repository, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		_, password, _ := r.BasicAuth()
		opens, err := mayEnter(filepath.Join(dir, filepath.Base(repository)+".passwords"), password)
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case !opens:
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "no such password", http.StatusUnauthorized)
		default:
			backend.ServeHTTP(w, r)
		}
	})
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// mayEnter reports whether a file of passwords has one, or is not there. It is
// read for each request: passwords change while clients are at work.
func mayEnter(file, password string) (bool, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return slices.Contains(strings.Fields(string(text)), password), err
}
