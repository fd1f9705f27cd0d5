// FerretDB as one program of the lab: its own command needs a build of its whole repository.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/FerretDB/FerretDB/v2/ferretdb"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:27017", "address and port")
	url := flag.String("postgresql-url", "", "the PostgreSQL server with DocumentDB")
	state := flag.String("state", ".", "a folder to write to")
	flag.Parse()
	telemetry := false
	server, err := ferretdb.New(&ferretdb.Config{
		PostgreSQLURL: *url,
		ListenAddr:    *listen,
		StateDir:      *state,
		Telemetry:     &telemetry,
		LogOutput:     os.Stderr,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server.Run(ctx)
}
