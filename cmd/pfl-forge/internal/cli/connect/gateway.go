package connect

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/overhttp"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/overhttp/login"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/trust"
)

// Identify fills in who asks: by the token of the file of --token-file, or else of the
// environment, or else by the login at this gateway, in this order. No error repeats a token.
//
// There is no flag for the token itself: everybody on the machine sees the arguments of its
// processes.
func Identify(a *kit.App, cfg *overhttp.Config) error {
	from := "PFL_FORGE_TOKEN"
	token := a.Getenv(from)
	file := a.TokenFile
	if file == "" && token == "" {
		file = a.Getenv("FORGE_TOKEN_FILE") // of which the completion of a shell does not know yet
	}
	switch {
	case file != "":
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
		from, token = "--token-file: "+file, strings.TrimSpace(string(text))
	case token == "":
		return useLogin(a, cfg)
	}
	if err := overhttp.CheckToken(token); err != nil {
		return fmt.Errorf("%s %w", from, err)
	}
	cfg.Token = token
	return nil
}

// missingToken says that nothing says who asks.
const missingToken = "a token is missing: put it into PFL_FORGE_TOKEN, or into the file of --token-file; " +
	"if your organisation has logins: pfl-forge login"

// useLogin has the login at the gateway say who asks, and by which authorities
// the gateway is known if no flag says it.
func useLogin(a *kit.App, cfg *overhttp.Config) error {
	if trust.StateHome(a.Getenv) == "" { // as in CI, where there can be no login
		return kit.Usage(errors.New(missingToken))
	}
	folder, err := GatewayLogin(a)
	if err != nil {
		return err
	}
	l, err := folder.Read()
	if errors.Is(err, login.ErrNone) {
		return kit.Usage(errors.New(missingToken))
	}
	cfg.Login, cfg.CA = folder.Token, cmp.Or(cfg.CA, l.CA)
	return err
}

// GatewayLogin returns the login at the gateway that --server names, which need not exist.
// Addresses that mean the same gateway have the same login.
func GatewayLogin(a *kit.App) (login.Folder, error) {
	server, err := overhttp.Address(a.Server)
	if err != nil {
		return login.Folder{}, kit.Usage(err)
	}
	path, err := loginFolder(a, server)
	return login.Folder{Path: path, Server: server}, err
}
