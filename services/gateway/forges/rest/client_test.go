package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// clientOf returns a client that keeps answers.
func clientOf(t *testing.T, address string) *rest.Client {
	t.Helper()
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := rest.New(rest.Config{
		Name: "a forge", Base: base, Keep: true, Now: time.Now, Authorize: func(context.Context) (string, error) { return "Bearer x", nil },
	})
	t.Cleanup(c.Close)
	return c
}

// TestPagesThatAreKept: a page that is full and that is as it was does not
// change when there is one more behind it. That one is read all the same,
// whether the forge tells of it together with "it is as it was" or not.
func TestPagesThatAreKept(t *testing.T) {
	for what, size := range map[string]int{"it is told": 100, "it is not told": 2} {
		t.Run(what, func(t *testing.T) {
			tells := size == 100 // and its pages are smaller than what was asked for, so that only the telling helps
			things := []int{1, 2}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n, _ := strconv.Atoi(r.URL.Query().Get("page"))
				from, to := min((n-1)*2, len(things)), min(n*2, len(things))
				text, _ := json.Marshal(things[from:to])
				same := r.Header.Get("If-None-Match") == string(text)
				if to < len(things) && (tells || !same) {
					w.Header().Set("Link", `<https://elsewhere.test>; rel="next"`)
				}
				if w.Header().Set("ETag", string(text)); same {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				_, _ = w.Write(text)
			}))
			t.Cleanup(srv.Close)
			c := clientOf(t, srv.URL)
			for range 3 {
				var got []int
				err := rest.List(wait.Context(t), c, "/x?per_page=2", size, func(page []int) (int, bool) {
					got = append(got, page...)
					return len(page), false
				})
				if err != nil || len(got) != len(things) {
					t.Fatalf("of %v there are %v, %v", things, got, err)
				}
				things = append(things, len(things)+1)
			}
		})
	}
}

// TestEndlessList: a list without an end is an error and no part of it.
func TestEndlessList(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", `<https://elsewhere.test>; rel="next"`)
		_, _ = w.Write([]byte("[1]"))
	}))
	t.Cleanup(srv.Close)
	err := rest.List(wait.Context(t), clientOf(t, srv.URL), "/x?y=z", 1, func(page []int) (int, bool) { return len(page), false })
	if err == nil {
		t.Error("it was read to its end")
	}
}
