# trackr with the PostgreSQL driver, from this tree. Built and started by docker-compose.yml.
FROM python:3.13-slim AS build
WORKDIR /src
RUN pip install --no-cache-dir build
COPY pyproject.toml README.md LICENSE ./
COPY tracker tracker
COPY cli cli
COPY analyses analyses
COPY migrations migrations
RUN python -m build --wheel --outdir /wheels

FROM python:3.13-slim
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt "$(echo /wheels/*.whl)[charts,postgres]" \
    && rm -rf /wheels /tmp/constraints.txt \
    && useradd --create-home --uid 1000 trackr \
    && mkdir /runs /lake \
    && chown trackr:trackr /lake
USER trackr
WORKDIR /home/trackr
ENV TRACKR_LAKE=/lake
VOLUME /lake
ENTRYPOINT ["trackr"]
CMD ["--help"]
