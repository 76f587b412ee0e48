//! Functions of values: `time_bucket` and `percentile`.

use datafusion::arrow::datatypes::{
    DataType, FieldRef, IntervalMonthDayNano, IntervalUnit, TimeUnit,
};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::execution::context::SessionContext;
use datafusion::functions::datetime::date_bin;
use datafusion::functions_aggregate::percentile_cont::percentile_cont_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Expr, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast, lit,
};
use kymo_time::Duration;

/// Makes the functions known.
pub(crate) fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(TimeBucket {
        signature: Signature::any(2, Volatility::Immutable),
    }));
    context.register_udaf(AggregateUDF::from(Percentile {
        signature: percentile_cont_udaf().signature().clone(),
    }));
}

/// `time_bucket(width, time)`: the beginning of the span of this width, counted from 1970, that a time lies in.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeBucket {
    signature: Signature,
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, DataType::Timestamp(unit, zone)] => Ok(DataType::Timestamp(*unit, zone.clone())),
            [_, time] if time.is_integer() || time.is_null() => Ok(DataType::Int64),
            [_, other] => plan_err!("time_bucket needs a time or nanoseconds, not {other}"),
            _ => plan_err!("time_bucket needs a width and a time"),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // All calls become other expressions before they run.
        plan_err!("the width of time_bucket has to be a constant")
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [Expr::Literal(width, _), time] = &args[..] else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let is_time = matches!(context.get_data_type(time)?, DataType::Timestamp(..));
        if width.is_null() {
            let none = match is_time {
                true => ScalarValue::try_from(&context.get_data_type(time)?)?,
                false => ScalarValue::Int64(None),
            };
            return Ok(ExprSimplifyResult::Simplified(lit(none)));
        }
        let width = lit(interval(width)?);
        let call = |time| date_bin().call(vec![width, time]);
        Ok(ExprSimplifyResult::Simplified(match is_time {
            true => call(time.clone()),
            false => {
                let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
                let time = cast(cast(time.clone(), DataType::Int64), nanos);
                cast(call(time), DataType::Int64)
            }
        }))
    }
}

/// The width of spans.
fn interval(width: &ScalarValue) -> Result<ScalarValue> {
    let nanos = |nanos| Ok(IntervalMonthDayNano::new(0, 0, nanos));
    let interval = match width {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            match text.parse::<Duration>() {
                Ok(duration) => nanos(duration.nanos),
                Err(error) => plan_err!("the width of time_bucket: {error}"),
            }
        }
        number if number.data_type().is_integer() => match number.cast_to(&DataType::Int64)? {
            ScalarValue::Int64(Some(number)) => nanos(number),
            _ => plan_err!("the width of time_bucket is too large"),
        },
        span if matches!(span.data_type(), DataType::Interval(_)) => {
            let unit = DataType::Interval(IntervalUnit::MonthDayNano);
            match span.cast_to(&unit)? {
                ScalarValue::IntervalMonthDayNano(Some(span)) => Ok(span),
                _ => plan_err!("the width of time_bucket is too large"),
            }
        }
        other => plan_err!(
            "the width of time_bucket is an interval, a text such as '100ms', or nanoseconds, not {}",
            other.data_type()
        ),
    }?;
    let parts = [
        i64::from(interval.months),
        i64::from(interval.days),
        interval.nanoseconds,
    ];
    if parts.iter().any(|&part| part < 0) || parts.iter().all(|&part| part == 0) {
        return plan_err!("the width of time_bucket has to be positive");
    }
    Ok(ScalarValue::IntervalMonthDayNano(Some(interval)))
}

/// `percentile(value, percent)`: as in Perfetto, of 0 to 100; between two values in proportion.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Percentile {
    signature: Signature,
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &str {
        "percentile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        percentile_cont_udaf().return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        percentile_cont_udaf().state_fields(args)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        // All other calls become another function.
        plan_err!("percentile cannot be used with OVER")
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        Some(Box::new(|mut call: AggregateFunction, _| {
            let percent = match call.params.args.get(1) {
                Some(Expr::Literal(value, _)) => value.cast_to(&DataType::Float64)?,
                _ => return plan_err!("the percentage of percentile has to be a constant"),
            };
            let ScalarValue::Float64(Some(percent)) = percent else {
                return plan_err!("the percentage of percentile has to be a number");
            };
            if !(0.0..=100.0).contains(&percent) {
                return plan_err!("the percentage of percentile has to be from 0 to 100");
            }
            call.params.args[1] = lit(percent / 100.0);
            call.func = percentile_cont_udaf();
            Ok(Expr::AggregateFunction(call))
        }))
    }
}
