# An image of culvert-nginx and nothing else:
#   docker build -t culvert-nginx .
#   docker run -v /etc/nginx:/etc/nginx:ro -p 80:80 culvert-nginx
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN mkdir -p -m 1777 /image/tmp /image/run /image/var/log/nginx
RUN ln -s /dev/stdout /image/var/log/nginx/access.log && ln -s /dev/stderr /image/var/log/nginx/error.log
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /image/culvert-nginx ./nginx/cmd/culvert-nginx

FROM scratch
# /tmp holds bodies that are spooled to files, /run the pid file of Debian's nginx.conf, and its logs are the container's. The certificates are for targets whose certificate is verified.
COPY --from=build /image /
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532
# QUIT waits for requests and tunnels; docker stop --time bounds it.
STOPSIGNAL SIGQUIT
ENTRYPOINT ["/culvert-nginx"]
CMD ["-e", "stderr", "-c", "/etc/nginx/nginx.conf"]
