"""Chinese lexicon, segmented by spaces.

Nouns: classifier | noun. Adjectives: before a noun | as a predicate.
Verbs: plain | with the aspect of the past; ``_`` is the object or place, ``R`` the recipient.
"""

from st_xling.data.phrasebook.tables import table, words

NOUNS = table("""
    teacher: 位 | 老师
    doctor: 位 | 医生
    farmer: 个 | 农夫
    cook: 位 | 厨师
    nurse: 位 | 护士
    driver: 位 | 司机
    painter: 位 | 画家
    tourist: 位 | 游客
    man: 个 | 男人
    woman: 个 | 女人
    friend: 个 | 朋友
    neighbour: 个 | 邻居
    student: 个 | 学生
    child: 个 | 孩子
    boy: 个 | 男孩
    girl: 个 | 女孩
    mother: 位 | 妈妈
    father: 位 | 爸爸
    grandmother: 位 | 奶奶
    grandfather: 位 | 爷爷
    uncle: 位 | 叔叔
    aunt: 位 | 阿姨
    dog: 只 | 狗
    cat: 只 | 猫
    horse: 匹 | 马
    rabbit: 只 | 兔子
    goat: 只 | 山羊
    bird: 只 | 鸟
    pig: 头 | 猪
    duck: 只 | 鸭子
    cow: 头 | 牛
    monkey: 只 | 猴子
    elephant: 头 | 大象
    bear: 头 | 熊
    book: 本 | 书
    newspaper: 份 | 报纸
    letter: 封 | 信
    bag: 个 | 包
    umbrella: 把 | 雨伞
    hat: 顶 | 帽子
    shirt: 件 | 衬衫
    cup: 个 | 杯子
    table: 张 | 桌子
    chair: 把 | 椅子
    bicycle: 辆 | 自行车
    car: 辆 | 汽车
    pencil: 支 | 铅笔
    phone: 部 | 电话
    key: 把 | 钥匙
    painting: 幅 | 画
    camera: 台 | 相机
    clock: 个 | 时钟
    lamp: 盏 | 灯
    flower: 朵 | 花
    box: 个 | 箱子
    window: 扇 | 窗户
    door: 扇 | 门
    house: 座 | 房子
    apple: 个 | 苹果
    pear: 个 | 梨
    tomato: 个 | 西红柿
    banana: 根 | 香蕉
    orange: 个 | 橙子
    carrot: 根 | 胡萝卜
    egg: 个 | 鸡蛋
    cake: 个 | 蛋糕
    sandwich: 个 | 三明治
    coffee: 杯 | 咖啡
    tea: 杯 | 茶
    juice: 杯 | 果汁
    school: 所 | 学校
    library: 座 | 图书馆
    museum: 座 | 博物馆
    theatre: 座 | 剧院
    market: 个 | 市场
    factory: 家 | 工厂
    station: 个 | 火车站
    airport: 个 | 机场
    hospital: 家 | 医院
    restaurant: 家 | 餐厅
    hotel: 家 | 酒店
    park: 个 | 公园
    garden: 个 | 花园
    village: 个 | 村子
    beach: 片 | 海滩
    kitchen: 间 | 厨房
""")

# After the place where things happen; 里 for those not listed.
AT = {"market": "上", "beach": "上"}

ADJECTIVES = table("""
    young: 年轻 的 | 年轻
    aged: 年老 的 | 老
    kind: 善良 的 | 善良
    clever: 聪明 的 | 聪明
    famous: 著名 的 | 出名
    rich: 富有 的 | 富有
    lazy: 懒惰 的 | 懒
    strong: 强壮 的 | 强壮
    polite: 有礼貌 的 | 礼貌
    tired: 疲惫 的 | 累
    nervous: 紧张 的 | 紧张
    happy: 快乐 的 | 高兴
    sad: 伤心 的 | 难过
    angry: 生气 的 | 生气
    big: 大 | 大
    small: 小 | 小
    white: 白色 的 | 白色 的
    black: 黑色 的 | 黑色 的
    brown: 棕色 的 | 棕色 的
    red: 红色 的 | 红色 的
    blue: 蓝色 的 | 蓝色 的
    green: 绿色 的 | 绿色 的
    yellow: 黄色 的 | 黄色 的
    new: 新 | 新
    old: 旧 | 旧
    thick: 厚 | 厚
    expensive: 昂贵 的 | 贵
    cheap: 便宜 的 | 便宜
    beautiful: 漂亮 的 | 漂亮
    clean: 干净 的 | 干净
    dirty: 脏 | 脏
    heavy: 沉重 的 | 重
    fresh: 新鲜 的 | 新鲜
    sweet: 甜 | 甜
    ripe: 成熟 的 | 熟
    delicious: 美味 的 | 好吃
    hot: 热 | 热
    cold: 冷 | 凉
    modern: 现代 的 | 现代
    quiet: 安静 的 | 安静
""")

VERBS = table("""
    buy: 买 _ | 买 了 _
    sell: 卖 _ | 卖掉 了 _
    eat: 吃 _ | 吃 了 _
    drink: 喝 _ | 喝 了 _
    read: 看 _ | 看 了 _
    write: 写 _ | 写 了 _
    look_for: 找 _ | 找 了 _
    find: 找到 _ | 找到 了 _
    lose: 弄丢 _ | 弄丢 了 _
    see: 看见 _ | 看见 了 _
    wash: 洗 _ | 洗 了 _
    carry: 搬 _ | 搬 了 _
    repair: 修理 _ | 修理 了 _
    draw: 画 _ | 画 了 _
    open: 打开 _ | 打开 了 _
    close: 关上 _ | 关上 了 _
    visit: 看望 _ | 看望 了 _
    visit_place: 参观 _ | 参观 了 _
    clean: 打扫 _ | 打扫 了 _
    invite: 邀请 _ | 邀请 了 _
    call: 给 _ 打 电话 | 给 _ 打 了 电话
    help: 帮助 _ | 帮助 了 _
    greet: 问候 _ | 问候 了 _
    watch: 观察 _ | 观察 了 _
    chase: 追 _ | 追 了 _
    feed_on: 吃 _ | 吃 了 _
    give: 送给 R _ | 送给 了 R _
    send: 寄给 R _ | 寄给 了 R _
    bring: 带给 R _ | 带给 了 R _
    sell_to: 卖给 R _ | 卖给 了 R _
    go: 去 _ | 去 了 _
    walk: 走路 去 _ | 走路 去 了 _
    drive: 开车 去 _ | 开车 去 了 _
    run: 跑到 _ | 跑到 了 _
    come_back: 从 _ 回来 | 从 _ 回来 了
    sleep: 睡觉 | 睡觉
    sing: 唱歌 | 唱歌
    dance: 跳舞 | 跳舞
    work: 工作 | 工作
    play: 玩 | 玩
    study: 学习 | 学习
    cook_meals: 做饭 | 做饭
    wait: 等待 | 等待
    laugh: 笑 | 笑 了
    cry: 哭 | 哭 了
    arrive: 到 | 到 了
    say: 说
    think: 认为
    know: 知道
    believe: 相信
""")

TIMES = words("""
    yesterday: 昨天
    last_week: 上周
    last_year: 去年
    this_morning: 今天 早上
    last_night: 昨晚
    two_days_ago: 两 天 前
    now: 现在
    at_the_moment: 此刻
    every_day: 每天
    every_morning: 每天 早上
    every_evening: 每天 晚上
    every_monday: 每 个 星期一
    every_week: 每周
    tomorrow: 明天
    next_week: 下周
    next_year: 明年
    tonight: 今晚
    day_after_tomorrow: 后天
    today: 今天
""")

NUMBERS = ("", "一", "两", "三", "四", "五", "六", "七", "八", "九")
PRONOUNS = {"i": "我", "you": "你", "he": "他", "she": "她", "we": "我们", "they": "他们"}
OWNERS = {"my": "我", "your": "你", "our": "我们"}
# Before the verb: affirmed, denied.
PARTICLES = table("""
    past: | 没有
    progressive: 正在
    habitual:
    present:
    future: 会 | 不 会
    want: 想 | 不 想
    can: 能 | 不 能
    must: 必须
""")
