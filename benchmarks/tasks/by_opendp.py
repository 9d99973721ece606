"""The tasks by OpenDP's Context over a polars frame. It has no regressions of several columns."""


def column_estimates(people):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.from_pandas(people[["wage"]]).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_by_weights=[2, 1, 1],
        margins=[dp.polars.Margin(max_length=100_000)],
    )
    wage, candidates = pl.col("wage").fill_nan(20.0).fill_null(20.0), list(range(20, 20_000, 5))
    mean = context.query().select(wage.dp.mean((20.0, 20_000.0))).release().collect()
    median = context.query().select(wage.dp.median(candidates)).release().collect()
    upper = context.query().select(wage.dp.quantile(0.9, candidates)).release().collect()
    return {"mean": mean.item(), "0.5": median.item(), "0.9": upper.item()}


def ledger(people):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.from_pandas(people[["wage"]]).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=0.9),
        split_evenly_over=3,
        margins=[dp.polars.Margin(max_length=100_000)],
    )
    mean = pl.col("wage").fill_nan(20.0).fill_null(20.0).dp.mean((20.0, 20_000.0))
    values = [context.query().select(mean).release().collect().item() for _ in range(3)]
    try:
        context.query().select(mean).release()
    except (ValueError, dp.OpenDPException):
        values.append(0.0)
    return dict(zip(["first", "second", "third", "refused"], values, strict=True))


def counts(people):
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    context = dp.Context.compositor(
        data=pl.from_pandas(people[["region"]].astype(str)).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["region"], invariant="keys", max_groups=4, max_length=100_000)],
    )
    found = context.query().group_by("region").agg(dp.len()).release().collect()
    return dict(zip(found["region"], found["len"], strict=True))
